// Kernels for what the driver's own copies and fills cannot do. `make kernels` compiles them to kernels.ptx.
//
// Each loops over the whole work from wherever its block is, so any number of blocks will do.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct alignas(16) Wide {
    u64 low, high;
};

// Up to eight dimensions, the last one fastest in the destination. Strides are in items. `Grid` in launch.rs.
struct Grid {
    u64 count;
    u32 ndim;
    u32 pad;
    i64 shape[8];
    i64 to[8];
    i64 from[8];
};

// Adds what the leading `ndim` dimensions of the index `at` move both sides by.
template <class Index>
static __device__ __forceinline__ void place(const Grid& grid, int ndim, Index at, i64& to, i64& from) {
#pragma unroll
    for (int axis = 7; axis >= 0; --axis) {
        if (axis < ndim) {
            Index length = static_cast<Index>(grid.shape[axis]);
            Index rest = at / length;
            i64 here = static_cast<i64>(at - rest * length);
            to += here * grid.to[axis];
            from += here * grid.from[axis];
            at = rest;
        }
    }
}

static __device__ __forceinline__ u64 first() { return u64(blockIdx.x) * blockDim.x + threadIdx.x; }
static __device__ __forceinline__ u64 step() { return u64(gridDim.x) * blockDim.x; }

template <class Item, class Index>
static __device__ __forceinline__ void copy_by(Item* to, const Item* from, const Grid& grid) {
    for (u64 at = first(); at < grid.count; at += step()) {
        i64 there = 0, here = 0;
        place<Index>(grid, grid.ndim, static_cast<Index>(at), there, here);
        to[there] = from[here];
    }
}

template <class Item, class Index>
static __device__ __forceinline__ void fill_by(Item* to, const Grid& grid, Item value) {
    for (u64 at = first(); at < grid.count; at += step()) {
        i64 there = 0, here = 0;
        place<Index>(grid, grid.ndim, static_cast<Index>(at), there, here);
        to[there] = value;
    }
}

// The last two dimensions go through shared memory: the last is fastest in the destination, the one before in the source.
// Launched with 256 threads.
template <class Item, int Side>
static __device__ __forceinline__ void transpose_by(Item* to, const Item* from, const Grid& grid) {
    __shared__ Item tile[Side][Side + 1];
    const int rows = 256 / Side;
    const int x = threadIdx.x % Side, y = threadIdx.x / Side;
    const int slow = grid.ndim - 2, fast = grid.ndim - 1;
    const i64 height = grid.shape[slow], width = grid.shape[fast];
    const u64 across = (width + Side - 1) / Side, down = (height + Side - 1) / Side;
    const u64 layers = grid.count / (static_cast<u64>(height) * width);
    for (u64 at = blockIdx.x; at < across * down * layers; at += gridDim.x) {
        const u64 layer = at / (across * down), inside = at % (across * down);
        const i64 top = static_cast<i64>(inside / across) * Side, left = static_cast<i64>(inside % across) * Side;
        i64 there = 0, here = 0;
        place<u64>(grid, slow, layer, there, here);
        for (int turn = y; turn < Side; turn += rows) {
            if (top + x < height && left + turn < width) {
                tile[turn][x] = from[here + (top + x) * grid.from[slow] + (left + turn) * grid.from[fast]];
            }
        }
        __syncthreads();
        for (int turn = y; turn < Side; turn += rows) {
            if (top + turn < height && left + x < width) {
                to[there + (top + turn) * grid.to[slow] + (left + x) * grid.to[fast]] = tile[x][turn];
            }
        }
        __syncthreads();
    }
}

#define KERNELS(bytes, Item, side)                                                                              \
    extern "C" __global__ void dlfield_copy_##bytes(Item* to, const Item* from, const Grid grid) {  \
        if (grid.count >> 32) {                                                                                 \
            copy_by<Item, u64>(to, from, grid);                                                                 \
        } else {                                                                                                \
            copy_by<Item, u32>(to, from, grid);                                                                 \
        }                                                                                                       \
    }                                                                                                           \
    extern "C" __global__ void __launch_bounds__(256)                                                           \
        dlfield_transpose_##bytes(Item* to, const Item* from, const Grid grid) {              \
        transpose_by<Item, side>(to, from, grid);                                                               \
    }                                                                                                           \
    extern "C" __global__ void dlfield_fill_strided_##bytes(Item* to, const Grid grid, Wide value) { \
        const Item item = *reinterpret_cast<const Item*>(&value);                                               \
        if (grid.count >> 32) {                                                                                 \
            fill_by<Item, u64>(to, grid, item);                                                                 \
        } else {                                                                                                \
            fill_by<Item, u32>(to, grid, item);                                                                 \
        }                                                                                                       \
    }

KERNELS(1, u8, 64)
KERNELS(2, u16, 64)
KERNELS(4, u32, 32)
KERNELS(8, u64, 32)
KERNELS(16, Wide, 32)

extern "C" __global__ void dlfield_fill_8(u64* to, u64 count, u64 value) {
    for (u64 at = first(); at < count; at += step()) {
        to[at] = value;
    }
}

extern "C" __global__ void dlfield_fill_16(Wide* to, u64 count, Wide value) {
    for (u64 at = first(); at < count; at += step()) {
        to[at] = value;
    }
}
