/* A Python interpreter that has the runtime of a sanitizer: the runtime has to be in the program, not in its modules. */
#include <Python.h>

int main(int count, char **arguments) { return Py_BytesMain(count, arguments); }
