// Everything that runs on the GPU, except what needs types or instructions of its own. It takes only built-in variables,
// so that tests run the same text on the host, thread by thread.
#pragma once

#include "verify.h"

// Counts what is wrong in device memory, and remembers where it began.
struct Errors {
  unsigned long long count;
  unsigned long long first;
};

__device__ inline void add_error(Errors* errors, unsigned long long place) {
  atomicAdd(&errors->count, 1ull);
  atomicMin(&errors->first, place);
}

// One flipped bit, for tests that have to see it found.
__global__ void flip_bit(unsigned char* bytes, size_t offset) { bytes[offset] ^= 1; }

// Values that only their index decides, and their check. `inverted` turns every bit over.
__global__ void write_pattern(uint64_t* data, size_t words, uint64_t seed, uint64_t inverted) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < words;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    data[i] = pattern(i, seed) ^ inverted;
}

__global__ void check_pattern(const uint64_t* data, size_t words, uint64_t seed, uint64_t inverted, Errors* errors) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < words;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    if (data[i] != (pattern(i, seed) ^ inverted)) add_error(errors, i);
}

// Elements of a matrix: small integers, or normally distributed values with a span of 0.
template <typename T>
__device__ T from_double(double value);
template <typename T>
__device__ double to_double(T value);

template <typename T>
__global__ void fill(T* matrix, size_t elements, uint64_t seed, int span) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < elements;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    matrix[i] = from_double<T>(span ? small_integer(i, seed, span) : normal(i, seed));
}

constexpr int TILE = 32;
constexpr uint64_t SEED_A = 1, SEED_B = 2;

// Every element of D = A^T B once more, in integers and from the indices: corrupted inputs are found too. Rows of A^T
// and columns of B have `size` elements next to each other, as have columns of D. `size` is a multiple of TILE.
template <typename Out>
__global__ void compare(const Out* d, int size, int span, Errors* errors) {
  __shared__ int a[TILE][TILE + 1], b[TILE][TILE + 1];
  const int x = threadIdx.x, y = threadIdx.y;
  const uint64_t row = blockIdx.x * TILE, column = blockIdx.y * TILE;
  int sum = 0;
  for (int k = 0; k < size; k += TILE) {
    a[y][x] = small_integer((row + y) * size + k + x, SEED_A, span);
    b[y][x] = small_integer((column + y) * size + k + x, SEED_B, span);
    __syncthreads();
    for (int i = 0; i < TILE; ++i) sum += a[x][i] * b[y][i];
    __syncthreads();
  }
  const size_t place = (column + y) * size + row + x;
  // The library rounds the exact sum to the output's format once, as here. A NaN equals nothing.
  if (!(to_double(d[place]) == to_double(from_double<Out>(sum)))) add_error(errors, place);
}

enum class Stream { READ, WRITE, COPY, TRIAD };

// Each block takes tiles of UNROLL x blockDim vectors of 16 bytes, all loads of a tile before its first store.
template <Stream KIND, int UNROLL>
__global__ void sweep(float4* __restrict__ a, const float4* __restrict__ b, const float4* __restrict__ c, size_t vectors,
                     float factor) {
  const size_t tile = static_cast<size_t>(UNROLL) * blockDim.x;
  float kept = 0;
  for (size_t start = blockIdx.x * tile + threadIdx.x; start < vectors; start += gridDim.x * tile) {
    float4 x[UNROLL], y[UNROLL];
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const size_t at = start + static_cast<size_t>(i) * blockDim.x;
      if (at >= vectors) continue;
      if (KIND != Stream::WRITE) x[i] = __ldcs(b + at);
      if (KIND == Stream::TRIAD) y[i] = __ldcs(c + at);
    }
#pragma unroll
    for (int i = 0; i < UNROLL; ++i) {
      const size_t at = start + static_cast<size_t>(i) * blockDim.x;
      if (at >= vectors) continue;
      if (KIND == Stream::READ) kept += x[i].x + x[i].y + x[i].z + x[i].w;
      if (KIND == Stream::WRITE) __stcs(a + at, make_float4(factor, factor, factor, factor));
      if (KIND == Stream::COPY) __stcs(a + at, x[i]);
      if (KIND == Stream::TRIAD)
        __stcs(a + at, make_float4(x[i].x + factor * y[i].x, x[i].y + factor * y[i].y, x[i].z + factor * y[i].z,
                                   x[i].w + factor * y[i].w));
    }
  }
  // Never true for the ones that the arrays hold, and the compiler cannot know: so the loads stay.
  if (KIND == Stream::READ && kept < 0) a[0].x = kept;
}

__global__ void set_ones(float4* data, size_t vectors) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < vectors;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    data[i] = make_float4(1, 1, 1, 1);
}

constexpr size_t RING = 1 << 16;  // links of 128 bytes: 8 MiB

// Link i, at word 16 i, names the next one: a step of an odd number of links, so that all are visited and no two
// neighbours follow each other.
__global__ void link_ring(uint64_t* ring) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < RING; i += gridDim.x * blockDim.x)
    ring[i * 16] = (i + 25033) % RING * 16;
}

// One read after the other: each says where the next one is.
__global__ void follow(const volatile uint64_t* ring, int reads, uint64_t* last) {
  uint64_t at = 0;
  for (int i = 0; i < reads; ++i) at = ring[at];
  *last = at;
}

constexpr int RANK_SPAN = 1000;  // sums of as many integers as there are GPUs stay exact in 32-bit floats

enum class Kind { ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, ALL_TO_ALL };

// What rank `from` sends at `index`. A plain function of both, so that every rank can work out what it should get.
__device__ float rank_value(int from, uint64_t index) {
  return static_cast<float>(small_integer(index, 1 + static_cast<uint64_t>(from), RANK_SPAN));
}

__global__ void fill_rank(float* send, size_t elements, int rank) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < elements;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    send[i] = rank_value(rank, i);
}

// `block` is the number of elements that one rank contributes to, or gets from, each other rank.
__global__ void check_rank(const float* receive, size_t elements, size_t block, Kind kind, int rank, int ranks,
                           Errors* errors) {
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < elements;
       i += static_cast<size_t>(gridDim.x) * blockDim.x) {
    float wanted = 0;
    switch (kind) {
      case Kind::ALL_REDUCE:
        for (int from = 0; from < ranks; ++from) wanted += rank_value(from, i);
        break;
      case Kind::REDUCE_SCATTER:
        for (int from = 0; from < ranks; ++from) wanted += rank_value(from, rank * block + i);
        break;
      case Kind::ALL_GATHER:
        wanted = rank_value(static_cast<int>(i / block), i % block);
        break;
      case Kind::ALL_TO_ALL:
        wanted = rank_value(static_cast<int>(i / block), rank * block + i % block);
        break;
    }
    if (!(receive[i] == wanted)) add_error(errors, i);
  }
}
