// What verification needs to agree on, for the host and the device: made-up values that every reader can compute again
// from an index alone, and a digest of a buffer that does not depend on the order in which its elements are read.
#pragma once

#include <cstdint>

#ifdef __CUDACC__
#define PODWRIGHT_EVERYWHERE __host__ __device__ inline
#else
#define PODWRIGHT_EVERYWHERE inline
#endif

// A one-to-one map of 64 bits (the finalizer of SplitMix64): inputs that differ in one bit look unrelated.
PODWRIGHT_EVERYWHERE uint64_t mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15ull;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
  return x ^ (x >> 31);
}

// The word that a memory test stores at `index` in the pass `seed`.
PODWRIGHT_EVERYWHERE uint64_t pattern(uint64_t index, uint64_t seed) { return mix(index ^ (seed << 48)); }

// A whole number from -span to span. Products and sums of such numbers are exact in the formats under test, so a matrix
// product of them has one right answer whatever the order of additions, and a single wrong bit shows.
PODWRIGHT_EVERYWHERE int small_integer(uint64_t index, uint64_t seed, int span) {
  return static_cast<int>((mix(index ^ (seed << 48)) >> 33) % static_cast<uint64_t>(2 * span + 1)) - span;
}

// About normal with deviation 1: the data that timed products run on. Zeros or small integers toggle fewer wires, draw
// less power and so would show a rate that no training job reaches.
PODWRIGHT_EVERYWHERE float normal(uint64_t index, uint64_t seed) {
  const uint64_t bits = mix(index ^ (seed << 48));
  const uint64_t sum = (bits & 0xFFFF) + ((bits >> 16) & 0xFFFF) + ((bits >> 32) & 0xFFFF) + (bits >> 48);
  return (static_cast<float>(sum) - 131070.0f) / 37837.0f;
}

// The part of one element in a digest. The digest is the sum of the parts modulo 2^64. For a given index the part is a
// one-to-one function of the bits: a buffer that differs in exactly one element always has another digest.
PODWRIGHT_EVERYWHERE uint64_t digest_part(uint64_t index, uint64_t bits) { return mix(mix(index) ^ bits); }
