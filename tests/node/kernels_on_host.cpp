// The text of the GPU kernels, run on the host: each thread of a block is a thread here, blocks come one after the other.
// This shows that indices and conditions are right. It says nothing about speed, memory models or the compiler for GPUs.
// Prints a line for each kernel: its name, and how many elements are wrong.
#include <algorithm>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

struct dim3 {
  unsigned x = 1, y = 1, z = 1;
};
struct float4 {
  float x, y, z, w;
};
thread_local dim3 blockIdx, threadIdx, blockDim, gridDim;
static std::barrier<>* block_barrier;
static std::mutex atomics;

#define __global__
#define __device__
#define __shared__ static  // blocks run one after the other
#define __syncthreads() block_barrier->arrive_and_wait()

static float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
static float4 __ldcs(const float4* from) { return *from; }
static void __stcs(float4* to, float4 value) { *to = value; }
static void atomicAdd(unsigned long long* to, unsigned long long value) {
  const std::lock_guard lock(atomics);
  *to += value;
}
static void atomicMin(unsigned long long* to, unsigned long long value) {
  const std::lock_guard lock(atomics);
  *to = std::min(*to, value);
}

#include "kernels.cuh"

template <>
float from_double<float>(double value) { return static_cast<float>(value); }
template <>
double to_double<float>(float value) { return value; }

static void launch(dim3 grid, dim3 block, const std::function<void()>& kernel) {
  for (unsigned y = 0; y < grid.y; ++y)
    for (unsigned x = 0; x < grid.x; ++x) {
      std::barrier<> barrier(block.x * block.y);
      block_barrier = &barrier;
      std::vector<std::thread> threads;
      for (unsigned j = 0; j < block.y; ++j)
        for (unsigned i = 0; i < block.x; ++i)
          threads.emplace_back([=, &kernel] {
            blockIdx = {x, y, 0}, threadIdx = {i, j, 0}, blockDim = block, gridDim = grid;
            kernel();
          });
      for (std::thread& thread : threads) thread.join();
    }
}

static unsigned long long errors_of(dim3 grid, dim3 block, const std::function<void(Errors*)>& kernel) {
  Errors errors = {0, ~0ull};
  launch(grid, block, [&] { kernel(&errors); });
  return errors.count;
}

static void products() {
  constexpr int SIZE = 64, SPAN = 4;
  std::vector<float> a(SIZE * SIZE), b(a), d(a);
  launch({3}, {32}, [&] { fill(a.data(), a.size(), SEED_A, SPAN); });
  launch({3}, {32}, [&] { fill(b.data(), b.size(), SEED_B, SPAN); });
  // As BLAS stores it: columns one after the other, A transposed.
  for (int row = 0; row < SIZE; ++row)
    for (int column = 0; column < SIZE; ++column)
      for (int k = 0; k < SIZE; ++k) d[row + column * SIZE] += a[k + row * SIZE] * b[k + column * SIZE];
  const dim3 grid = {SIZE / TILE, SIZE / TILE}, block = {TILE, TILE};
  printf("compare %llu\n", errors_of(grid, block, [&](Errors* e) { compare(d.data(), SIZE, SPAN, e); }));
  flip_bit(reinterpret_cast<unsigned char*>(d.data()), 777 * sizeof(float));
  printf("compare-flipped %llu\n", errors_of(grid, block, [&](Errors* e) { compare(d.data(), SIZE, SPAN, e); }));
}

static void patterns() {
  std::vector<uint64_t> data(10007);
  for (const uint64_t inverted : {0ull, ~0ull}) {
    launch({3}, {32}, [&] { write_pattern(data.data(), data.size(), 5, inverted); });
    const auto check = [&](Errors* e) { check_pattern(data.data(), data.size(), 5, inverted, e); };
    printf("pattern %llu\n", errors_of({3}, {32}, check));
    flip_bit(reinterpret_cast<unsigned char*>(data.data()), 8 * 10006 + 7);
    printf("pattern-flipped %llu\n", errors_of({3}, {32}, check));
  }
}

template <Stream KIND, int UNROLL>
void stream(const char* name, unsigned blocks) {
  std::vector<float4> a(10007), b(a), c(a);
  launch({3}, {32}, [&] { set_ones(a.data(), a.size()); });
  for (size_t i = 0; i < a.size(); ++i) {
    b[i] = {static_cast<float>(i), 1, 2, 3};
    c[i] = {1, 1, 1, static_cast<float>(i)};
  }
  launch({blocks}, {16}, [&] { sweep<KIND, UNROLL>(a.data(), b.data(), c.data(), a.size(), 2.0f); });
  size_t wrong = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const float at = static_cast<float>(i);
    float4 wanted = {1, 1, 1, 1};
    if (KIND == Stream::WRITE) wanted = {2, 2, 2, 2};
    if (KIND == Stream::COPY) wanted = b[i];
    if (KIND == Stream::TRIAD) wanted = {at + 2, 3, 4, 3 + 2 * at};
    wrong += a[i].x != wanted.x || a[i].y != wanted.y || a[i].z != wanted.z || a[i].w != wanted.w;
  }
  printf("%s %zu\n", name, wrong);
}

static void ring() {
  std::vector<uint64_t> links(RING * 16);
  launch({4}, {64}, [&] { link_ring(links.data()); });
  uint64_t last = 1;
  follow(links.data(), RING / 2, &last);
  const bool early = last == 0;
  follow(links.data(), RING, &last);
  printf("ring %d\n", early || last != 0);  // back at the start after all links, and not before
}

static void ranks() {
  constexpr int RANKS = 4;
  constexpr size_t BLOCK = 100;
  using Buffers = std::vector<std::vector<float>>;
  Buffers send(RANKS, std::vector<float>(RANKS * BLOCK));
  for (int rank = 0; rank < RANKS; ++rank)
    launch({2}, {8}, [&] { fill_rank(send[rank].data(), RANKS * BLOCK, rank); });
  const auto test = [&](const char* name, Kind kind, size_t elements, const std::function<float(int, size_t)>& right) {
    for (const bool flipped : {false, true}) {
      unsigned long long wrong = 0;
      for (int rank = 0; rank < RANKS; ++rank) {
        std::vector<float> got(elements);
        for (size_t i = 0; i < elements; ++i) got[i] = right(rank, i);
        if (flipped && rank == 2) flip_bit(reinterpret_cast<unsigned char*>(got.data()), 4 * 42);
        wrong += errors_of({2}, {8}, [&](Errors* e) { check_rank(got.data(), elements, BLOCK, kind, rank, RANKS, e); });
      }
      printf("%s%s %llu\n", name, flipped ? "-flipped" : "", wrong);
    }
  };
  const auto sum = [&](size_t i) {
    float total = 0;
    for (const auto& buffer : send) total += buffer[i];
    return total;
  };
  test("all_reduce", Kind::ALL_REDUCE, RANKS * BLOCK, [&](int, size_t i) { return sum(i); });
  test("reduce_scatter", Kind::REDUCE_SCATTER, BLOCK, [&](int rank, size_t i) { return sum(rank * BLOCK + i); });
  test("all_gather", Kind::ALL_GATHER, RANKS * BLOCK, [&](int, size_t i) { return send[i / BLOCK][i % BLOCK]; });
  test("all_to_all", Kind::ALL_TO_ALL, RANKS * BLOCK,
       [&](int rank, size_t i) { return send[i / BLOCK][rank * BLOCK + i % BLOCK]; });
}

int main() {
  products();
  patterns();
  for (const unsigned blocks : {3u, 80u}) {
    stream<Stream::READ, 8>("read", blocks);
    stream<Stream::WRITE, 2>("write", blocks);
    stream<Stream::COPY, 1>("copy", blocks);
    stream<Stream::COPY, 8>("copy", blocks);
    stream<Stream::TRIAD, 4>("triad", blocks);
  }
  ring();
  ranks();
  return 0;
}
