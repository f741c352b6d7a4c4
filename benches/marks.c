// Marks for callgrind: `mark` writes what was executed since the mark before it as a part with a name. Without valgrind they do
// nothing.

#include <valgrind/callgrind.h>

void start(void) { CALLGRIND_START_INSTRUMENTATION; }

void mark(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
