// What a device gives to kernels, for the host: runs the threads of a block in turns, each until its next barrier.

#include <cstdio>
#include <cstdlib>
#include <cmath>
#include <cstring>
#include <ucontext.h>

#define __device__
#define __global__
#define __shared__ static
#define __forceinline__ inline
#define __launch_bounds__(threads)

static struct {
    unsigned x, y, z;
} threadIdx, blockIdx, blockDim, gridDim;

template <class To, class From>
static To same_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

static float __uint_as_float(unsigned bits) { return same_bits<float>(bits); }
static unsigned __float_as_uint(float number) { return same_bits<unsigned>(number); }
static double __longlong_as_double(long long bits) { return same_bits<double>(bits); }
static long long __double_as_longlong(double number) { return same_bits<long long>(number); }

static float half_to_float(unsigned short half) {
    const int exponent = half >> 10 & 31, digits = half & 1023;
    const float size = exponent == 31 ? INFINITY : exponent ? ldexpf(1024 + digits, exponent - 25) : ldexpf(digits, -24);
    return half >> 15 ? -size : size;
}

static unsigned short float_to_half(float number) {
    const unsigned short sign = std::signbit(number) ? 0x8000 : 0;
    int exponent;
    frexpf(number, &exponent);
    // The distance of neighbours, as a power of two; below 2^-14 it is that of the smallest number.
    const int power = number == 0 || exponent < -13 ? -24 : exponent - 11;
    if (std::isinf(number) || power > 5) {
        return sign | 0x7c00;
    }
    // Ties to even. What rounds up to the next power of two carries into the exponent, and at last gives infinity.
    const int digits = static_cast<int>(nearbyintf(ldexpf(fabsf(number), -power)));
    return sign | (digits + ((power + 24) << 10));
}

static void __syncthreads();

#include "../../src/copy/cuda/kernels.cu"

namespace {

const int THREADS = 1024, STACK = 1 << 16;

struct Thread {
    ucontext_t context;
    bool runs;
};

Thread threads[THREADS];
ucontext_t scheduler;
int running;

struct {
    unsigned kernel;
    u8* to;
    const u8* from;
    const Grid* grid;
    const Wide* value;
} launched;

void call() {
    const auto [kernel, to, from, grid, value] = launched;
    switch (kernel) {
        case 1: return dlfield_transpose_1(to, from, *grid);
        case 2: return dlfield_transpose_2(to, from, *grid);
        case 4: return dlfield_transpose_4(to, from, *grid);
        case 0: return dlfield_transpose(to, from, *grid);
        default: return dlfield_copy(to, from, *grid, *value);
    }
}

void set_thread(int number) {
    running = number;
    const unsigned at = number;
    threadIdx = {at % blockDim.x, at / blockDim.x % blockDim.y, at / (blockDim.x * blockDim.y)};
}

void body() {
    call();
    threads[running].runs = false;
}

// Runs the threads of a block; each gets a turn between two barriers.
void run_block(int count) {
    static char* stacks = static_cast<char*>(malloc(static_cast<size_t>(THREADS) * STACK));
    for (int number = 0; number < count; ++number) {
        Thread& thread = threads[number];
        getcontext(&thread.context);
        thread.context.uc_stack.ss_sp = stacks + static_cast<size_t>(number) * STACK;
        thread.context.uc_stack.ss_size = STACK;
        thread.context.uc_link = &scheduler;
        thread.runs = true;
        makecontext(&thread.context, body, 0);
    }
    for (int left = count; left > 0;) {
        int waiting = 0;
        for (int number = 0; number < count; ++number) {
            set_thread(number);
            swapcontext(&scheduler, &threads[number].context);
            waiting += threads[number].runs;
        }
        if (waiting != 0 && waiting != count) {
            fputs("fakecuda: some threads of a block are at a barrier, and others have ended\n", stderr);
            abort();
        }
        left = waiting;
    }
}

}  // namespace

static void __syncthreads() {
    swapcontext(&threads[running].context, &scheduler);
}

// Runs a kernel. `kernel` is the number in the name of a transpose, 0 without one, or any other number for a copy.
extern "C" void device_run(
    unsigned kernel, const unsigned grid[3], const unsigned block[3], u8* to, const u8* from, const Grid* over, const Wide* value) {
    launched = {kernel, to, from, over, value};
    blockDim = {block[0], block[1], block[2]};
    // A few blocks, so that each does what is left for others.
    gridDim = {grid[0] < 7 ? grid[0] : 7, grid[1], grid[2]};
    const int count = block[0] * block[1] * block[2];
    for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, 0, 0};
        if (kernel <= 4) {
            run_block(count);
            continue;
        }
        for (int number = 0; number < count; ++number) {
            set_thread(number);
            call();
        }
    }
}
