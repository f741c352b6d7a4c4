// Kernels for what the driver's own copies and fills cannot do. `make kernels` compiles them to kernels.ptx. The driver double of
// the tests compiles them for the host and runs them, with what a device has: tests/cuda_sim/src/device.cpp.
//
// Each loops over the whole work from wherever its block is, so any number of blocks will do. Indices have 32 bits: whoever
// launches a kernel divides what is larger.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct alignas(16) Wide {
    u64 low, high;
};

// What an item is: a number, or bits that stay the same. `INTEGER` is one that needs no sign. `Kind` in launch.rs.
enum Kind : u32 { BITS, BOOL, I8, I16, I32, INTEGER, U64, F16, BF16, F32, F64 };

// The loops of a launch. Strides are in bytes. `Grid` in launch.rs.
struct Grid {
    // The outer ones, `ndim` of them.
    i64 shape[7], to[7], from[7];
    // The last one, fastest in the destination, and for a transpose the one before it, fastest in the source.
    i64 width, to_right, from_right;
    i64 height, to_down, from_down;
    u32 ndim;
    // Pieces of a row, or tiles of a layer from left to right; pieces or tiles of everything.
    u32 across, count;
    // Bytes of an item.
    u32 to_size, from_size;
    // The same, or 0 if the items' addresses are no multiples of it.
    u32 to_access, from_access;
    Kind to_kind, from_kind;
};

// Adds what the index `at` of the outer loops moves both sides by.
static __device__ __forceinline__ void place(const Grid& grid, u32 at, u8*& to, const u8*& from) {
#pragma unroll
    for (int axis = 6; axis >= 0; --axis) {
        if (static_cast<u32>(axis) < grid.ndim) {
            const u32 length = static_cast<u32>(grid.shape[axis]), rest = at / length;
            const i64 here = at - rest * length;
            to += here * grid.to[axis];
            from += here * grid.from[axis];
            at = rest;
        }
    }
}

#ifdef __CUDACC__
static __device__ __forceinline__ float half_to_float(u16 half) {
    float number;
    asm("cvt.f32.f16 %0, %1;" : "=f"(number) : "h"(half));
    return number;
}

static __device__ __forceinline__ u16 float_to_half(float number) {
    u16 half;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(half) : "f"(number));
    return half;
}
#endif

// The next four make a NaN quiet and keep its sign and its first bits, as the host does; a device has only one NaN.

static __device__ __forceinline__ float from_half(u32 half) {
    const bool is_nan = (half & 0x7fff) > 0x7c00;
    return is_nan ? __uint_as_float((half & 0x8000) << 16 | 0x7fc00000 | (half & 0x3ff) << 13) : half_to_float(half);
}

static __device__ __forceinline__ u32 to_half(float number) {
    const u32 bits = __float_as_uint(number);
    return number != number ? (bits >> 16 & 0x8000) | 0x7e00 | (bits >> 13 & 0x3ff) : float_to_half(number);
}

static __device__ __forceinline__ double widen(float number) {
    const u64 bits = __float_as_uint(number);
    const u64 nan = (bits & 0x80000000) << 32 | 0x7ff8000000000000 | (bits & 0x3fffff) << 29;
    return number != number ? __longlong_as_double(nan) : static_cast<double>(number);
}

static __device__ __forceinline__ float narrow(double number) {
    const u64 bits = __double_as_longlong(number);
    const u32 nan = (bits >> 32 & 0x80000000) | 0x7fc00000 | (bits >> 29 & 0x3fffff);
    return number != number ? __uint_as_float(nan) : static_cast<float>(number);
}

// Rounds to odd: an inexact result gets an odd last bit, so that no later rounding sees a tie.
static __device__ __forceinline__ float narrow_to_odd(double number) {
    const float near = narrow(number);
    const double back = static_cast<double>(near);
    const bool is_larger = (back < 0 ? -back : back) > (number < 0 ? -number : number);
    return number != number || back == number ? near : __uint_as_float((__float_as_uint(near) - is_larger) | 1);
}

// Rounds to nearest, ties to even. A NaN keeps only its sign.
static __device__ __forceinline__ u32 to_bfloat(float number) {
    const u32 bits = __float_as_uint(number);
    return number != number ? (bits >> 16 & 0x8000) | 0x7fc0 : (bits + (0x7fff + (bits >> 16 & 1))) >> 16;
}

// Casts the bits of a number, with the results of src/copy/convert/cast.rs. For an integer, the lower bits of the result count.
static __device__ __forceinline__ u64 cast(Kind to, Kind from, u64 bits) {
    float single = 0;
    double wide = 0;
    switch (from) {
        case BOOL: bits = bits != 0; break;
        case I8: bits = static_cast<i64>(static_cast<signed char>(bits)); break;
        case I16: bits = static_cast<i64>(static_cast<short>(bits)); break;
        case I32: bits = static_cast<i64>(static_cast<int>(bits)); break;
        case F16: single = from_half(bits); break;
        case BF16: single = __uint_as_float(bits << 16); break;
        case F32: single = __uint_as_float(bits); break;
        case F64: wide = __longlong_as_double(bits); break;
        default: break;
    }
    if (to <= U64 || to == from) {
        return bits;
    }
    if (to == F64) {
        if (from == U64) {
            wide = static_cast<double>(bits);
        } else {
            wide = from < U64 ? static_cast<double>(static_cast<i64>(bits)) : widen(single);
        }
        return __double_as_longlong(wide);
    }
    if (from == U64) {
        single = static_cast<float>(bits);
    } else if (from < U64) {
        single = static_cast<float>(static_cast<i64>(bits));
    } else if (from == F64) {
        single = to == F16 ? narrow_to_odd(wide) : narrow(wide);
    }
    return to == F32 ? __float_as_uint(single) : to == F16 ? to_half(single) : to_bfloat(single);
}

// The next three treat four items of a thread, `distance` bytes apart: those of numbers 0, `step` and so on below `left`.
#define FOUR                                   \
    _Pragma("unroll") for (int k = 0; k < 4; ++k) \
        if (static_cast<i64>(k) * step < left)

static __device__ __forceinline__ void load(
    Wide (&items)[4], const Grid& grid, const u8* from, i64 distance, u32 step, i64 left) {
    switch (grid.from_access) {
        case 1: FOUR items[k].low = from[k * distance]; break;
        case 2: FOUR items[k].low = *reinterpret_cast<const u16*>(from + k * distance); break;
        case 4: FOUR items[k].low = *reinterpret_cast<const u32*>(from + k * distance); break;
        case 8: FOUR items[k].low = *reinterpret_cast<const u64*>(from + k * distance); break;
        case 16: FOUR items[k] = *reinterpret_cast<const Wide*>(from + k * distance); break;
        default:
            FOUR {
                items[k].low = 0;
#pragma unroll 1
                for (u32 byte = 0; byte < grid.from_size; ++byte) {
                    items[k].low |= static_cast<u64>(from[k * distance + byte]) << 8 * byte;
                }
            }
    }
}

// A real number is cast to a complex one by a wider store: the imaginary part is 0.
static __device__ __forceinline__ void cast(Wide (&items)[4], const Grid& grid) {
    if (grid.to_kind != BITS) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            items[k] = {cast(grid.to_kind, grid.from_kind, items[k].low), 0};
        }
    }
}

static __device__ __forceinline__ void store(
    const Wide (&items)[4], const Grid& grid, u8* to, i64 distance, u32 step, i64 left) {
    switch (grid.to_access) {
        case 1: FOUR to[k * distance] = items[k].low; break;
        case 2: FOUR *reinterpret_cast<u16*>(to + k * distance) = items[k].low; break;
        case 4: FOUR *reinterpret_cast<u32*>(to + k * distance) = items[k].low; break;
        case 8: FOUR *reinterpret_cast<u64*>(to + k * distance) = items[k].low; break;
        case 16: FOUR *reinterpret_cast<Wide*>(to + k * distance) = items[k]; break;
        default:
            FOUR {
#pragma unroll 1
                for (u32 byte = 0; byte < grid.to_size; ++byte) {
                    to[k * distance + byte] = byte < 8 ? items[k].low >> 8 * byte : 0;
                }
            }
    }
}

// Copies, casts and fills. The threads with one `threadIdx.y` treat a piece of a row, four items each. Without a source, all
// items are `value`.
extern "C" __global__ void __launch_bounds__(256) dlfield_copy(u8* to, const u8* from, const Grid grid, const Wide value) {
    const u32 lanes = blockDim.x;
    for (u32 at = blockIdx.x * blockDim.y + threadIdx.y; at < grid.count; at += gridDim.x * blockDim.y) {
        const u32 row = at / grid.across;
        const i64 x = static_cast<i64>(at - row * grid.across) * (4 * lanes) + threadIdx.x, left = grid.width - x;
        u8* there = to + x * grid.to_right;
        const u8* here = from + x * grid.from_right;
        place(grid, row, there, here);
        Wide items[4] = {value, value, value, value};
        if (from) {
            load(items, grid, here, lanes * grid.from_right, lanes, left);
            cast(items, grid);
        }
        store(items, grid, there, lanes * grid.to_right, lanes, left);
    }
}

// A tile of a transpose: its place in its layer, and the addresses of the layer.
struct Tile {
    i64 left, top;
    u8* to;
    const u8* from;

    __device__ __forceinline__ Tile(u32 at, u32 side, const Grid& grid, u8* to, const u8* from) : to(to), from(from) {
        const u32 in_layer = grid.across * static_cast<u32>((grid.height + side - 1) / side);
        const u32 layer = at / in_layer, inside = at - layer * in_layer;
        top = static_cast<i64>(inside / grid.across) * side;
        left = static_cast<i64>(inside % grid.across) * side;
        place(grid, layer, this->to, this->from);
    }
};

// Copies or casts by way of shared memory, so that neighbouring threads access neighbours on both sides. Blocks have 32 x 8 threads.
extern "C" __global__ void __launch_bounds__(256) dlfield_transpose(u8* to, const u8* from, const Grid grid) {
    __shared__ u64 low[32][33], high[32][33];
    const int x = threadIdx.x, y = threadIdx.y;
    for (u32 at = blockIdx.x; at < grid.count; at += gridDim.x) {
        const Tile tile(at, 32, grid, to, from);
        const i64 right = grid.width - tile.left, below = grid.height - tile.top;
        Wide items[4] = {};
        load(items, grid, tile.from + (tile.top + x) * grid.from_down + (tile.left + y) * grid.from_right, 8 * grid.from_right, 8,
             x < below ? right - y : 0);
        cast(items, grid);
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            low[y + 8 * k][x] = items[k].low;
            if (grid.to_size == 16) {
                high[y + 8 * k][x] = items[k].high;
            }
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < 4; ++k) {
            items[k].low = low[x][y + 8 * k];
            if (grid.to_size == 16) {
                items[k].high = high[x][y + 8 * k];
            }
        }
        store(items, grid, tile.to + (tile.top + y) * grid.to_down + (tile.left + x) * grid.to_right, 8 * grid.to_down, 8,
              x < right ? below - y : 0);
        __syncthreads();
    }
}

// As above, for items that are contiguous on both sides, and start at multiples of `Pack`: a thread accesses `Many` items at once.
// Blocks have Side / Many x 256 / (Side / Many) threads.
template <class Item, class Pack, int Many, int Side>
static __device__ __forceinline__ void transpose_packed(u8* to, const u8* from, const Grid& grid) {
    __shared__ Item items[Side][Side + Many];
    const int rows = 256 / (Side / Many), x = threadIdx.x * Many, y = threadIdx.y;
    union {
        Pack pack;
        Item item[Many];
    } all;
    for (u32 at = blockIdx.x; at < grid.count; at += gridDim.x) {
        const Tile tile(at, Side, grid, to, from);
        const i64 right = grid.width - tile.left, below = grid.height - tile.top;
        const u8* here = tile.from + (tile.top + x) * static_cast<i64>(sizeof(Item)) + tile.left * grid.from_right;
        u8* there = tile.to + (tile.left + x) * static_cast<i64>(sizeof(Item)) + tile.top * grid.to_down;
        const bool is_whole = right >= Side && below >= Side;
        if (is_whole) {
#pragma unroll
            for (int turn = y; turn < y + Side; turn += rows) {
                all.pack = *reinterpret_cast<const Pack*>(here + turn * grid.from_right);
#pragma unroll
                for (int k = 0; k < Many; ++k) {
                    items[turn][x + k] = all.item[k];
                }
            }
        } else {
#pragma unroll 1
            for (int turn = y; turn < Side && turn < right; turn += rows) {
#pragma unroll 1
                for (int k = 0; k < Many && x + k < below; ++k) {
                    items[turn][x + k] = reinterpret_cast<const Item*>(here + turn * grid.from_right)[k];
                }
            }
        }
        __syncthreads();
        if (is_whole) {
#pragma unroll
            for (int turn = y; turn < y + Side; turn += rows) {
#pragma unroll
                for (int k = 0; k < Many; ++k) {
                    all.item[k] = items[x + k][turn];
                }
                *reinterpret_cast<Pack*>(there + turn * grid.to_down) = all.pack;
            }
        } else {
#pragma unroll 1
            for (int turn = y; turn < Side && turn < below; turn += rows) {
#pragma unroll 1
                for (int k = 0; k < Many && x + k < right; ++k) {
                    reinterpret_cast<Item*>(there + turn * grid.to_down)[k] = items[x + k][turn];
                }
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(256) dlfield_transpose_1(u8* to, const u8* from, const Grid grid) {
    transpose_packed<u8, u32, 4, 128>(to, from, grid);
}

extern "C" __global__ void __launch_bounds__(256) dlfield_transpose_2(u8* to, const u8* from, const Grid grid) {
    transpose_packed<u16, u64, 4, 64>(to, from, grid);
}

extern "C" __global__ void __launch_bounds__(256) dlfield_transpose_4(u8* to, const u8* from, const Grid grid) {
    transpose_packed<u32, u64, 2, 64>(to, from, grid);
}
