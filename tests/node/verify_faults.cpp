// Faults in what the benchmark programs verify, seeded and counted on the host: the functions under test are those that
// the GPU runs. Prints one number for each fault, in the order that the test expects.
#include <cstdio>
#include <cstring>
#include <vector>

#include "verify.h"

constexpr uint64_t WORDS = 1000000;

static uint64_t digest(const std::vector<uint64_t>& data) {
  uint64_t sum = 0;
  for (uint64_t i = data.size(); i-- > 0;) sum += digest_part(i, data[i]);
  return sum;
}

int main() {
  // Every bit of one word of a million turned over once: the pattern test sees one wrong word, the digest changes.
  std::vector<uint64_t> data(WORDS);
  for (uint64_t i = 0; i < WORDS; ++i) data[i] = pattern(i, 3);
  const uint64_t clean = digest(data);
  int wrong = 0, digests = 0;
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t place = mix(bit) % WORDS;
    data[place] ^= 1ull << bit;
    wrong += data[place] != pattern(place, 3);
    if (bit % 16 == 0) digests += digest(data) != clean;
    data[place] ^= 1ull << bit;
  }
  printf("%d %d\n", wrong, digests);

  // Two words that changed places hold the right bits in the wrong order.
  std::swap(data[10], data[20]);
  printf("%d\n", digest(data) != clean);
  std::swap(data[10], data[20]);

  // A product of small integers, 1000 x 1000, once in floats in one order and once in integers in another: equal in
  // every element, and one low bit turned over in one of them shows.
  constexpr int SIZE = 1000, DEPTH = 64, SPAN = 4;
  std::vector<float> product(static_cast<size_t>(SIZE) * SIZE);
  for (int column = 0; column < SIZE; ++column)
    for (int row = 0; row < SIZE; ++row) {
      float sum = 0;
      for (int k = DEPTH; k-- > 0;)
        sum += static_cast<float>(small_integer(static_cast<uint64_t>(row) * DEPTH + k, 1, SPAN)) *
               static_cast<float>(small_integer(static_cast<uint64_t>(column) * DEPTH + k, 2, SPAN));
      product[static_cast<size_t>(column) * SIZE + row] = sum;
    }
  const auto differing = [&] {
    int count = 0;
    for (int column = 0; column < SIZE; ++column)
      for (int row = 0; row < SIZE; ++row) {
        int sum = 0;
        for (int k = 0; k < DEPTH; ++k)
          sum += small_integer(static_cast<uint64_t>(row) * DEPTH + k, 1, SPAN) *
                 small_integer(static_cast<uint64_t>(column) * DEPTH + k, 2, SPAN);
        count += !(product[static_cast<size_t>(column) * SIZE + row] == static_cast<float>(sum));
      }
    return count;
  };
  const int before = differing();
  uint32_t bits;
  std::memcpy(&bits, &product[123456], sizeof bits);
  bits ^= 1;
  std::memcpy(&product[123456], &bits, sizeof bits);
  printf("%d %d\n", before, differing());

  // Data of timed products: about normal. Integers: all of -span to span, and no other.
  double sum = 0, squares = 0;
  int seen[9] = {};
  bool outside = false;
  for (uint64_t i = 0; i < WORDS; ++i) {
    const double x = normal(i, 1);
    sum += x;
    squares += x * x;
    const int integer = small_integer(i, 1, SPAN);
    outside |= integer < -SPAN || integer > SPAN;
    ++seen[integer + SPAN];
  }
  bool even = !outside;
  for (const int count : seen) even &= count > 110000 && count < 112500;
  printf("%.2f %.2f %d\n", sum / WORDS + 0.0005, squares / WORDS, even);
  return 0;
}
