// The memory of one GPU: its bandwidth, and whether it keeps what is written to it.
//   memory --device 0 --gib 4 --batches 10 --passes 2 [--flip 1] [--runtime 1]
//   hbm_read, hbm_write, hbm_copy, hbm_triad   bytes read plus bytes written a second, median over batches
//   memory_tested   percent of the free memory that the pattern test covered
//   memory_wrong    words of 8 bytes that did not come back
//   hbm_copy_runtime   cudaMemcpyAsync alone, to compare with; only with --runtime 1
// Kernels of several shapes are tried first, because the fastest one differs between generations of GPUs; what the
// runtime itself offers (cudaMemcpyAsync, cudaMemsetAsync) is tried beside them.
#include "program.cuh"

using Sweep = void (*)(float4*, const float4*, const float4*, size_t, float);

struct Shape {
  Sweep kernel;
  int unroll;
  unsigned blocks, threads;
};

template <Stream KIND>
std::vector<Shape> shapes(size_t vectors, int processors) {
  const std::pair<Sweep, int> kernels[] = {
      {sweep<KIND, 1>, 1}, {sweep<KIND, 2>, 2}, {sweep<KIND, 4>, 4}, {sweep<KIND, 8>, 8}};
  std::vector<Shape> found;
  for (const auto& [kernel, unroll] : kernels)
    for (unsigned threads : {256u, 512u, 1024u}) {
      int resident = 0;
      CUDA(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, kernel, static_cast<int>(threads), 0));
      if (resident == 0) continue;
      const size_t tile = static_cast<size_t>(unroll) * threads;
      // One tile for each block, or as many blocks as run at once, each with many tiles.
      const auto each = static_cast<unsigned>((vectors + tile - 1) / tile);
      found.push_back({kernel, unroll, each, threads});
      found.push_back({kernel, unroll, std::min(each, static_cast<unsigned>(resident * processors)), threads});
    }
  return found;
}

class Bandwidth {
 public:
  Bandwidth(int device, size_t bytes, int batches) : device_(device), vectors_(bytes / sizeof(float4)), batches_(batches) {
    CUDA(cudaDeviceGetAttribute(&processors_, cudaDevAttrMultiProcessorCount, device));
    CUDA(cudaStreamCreate(&stream_));
    for (float4** array : {&a_, &b_, &c_}) {
      CUDA(cudaMalloc(array, vectors_ * sizeof(float4)));
      set_ones<<<1024, 256, 0, stream_>>>(*array, vectors_);
    }
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(stream_));
  }

  ~Bandwidth() {
    for (float4* array : {a_, b_, c_}) cudaFree(array);
    cudaStreamDestroy(stream_);
  }

  // `arrays` is how many arrays one pass reads or writes.
  template <Stream KIND>
  void run(const char* name, int arrays) {
    const double bytes = static_cast<double>(vectors_) * sizeof(float4) * arrays;
    Shape best = {};
    double least = 0;
    for (const Shape& shape : shapes<KIND>(vectors_, processors_)) {
      launch(shape);
      const double taken = seconds(stream_, 3, [&] { launch(shape); });
      if (least == 0 || taken < least) {
        least = taken;
        best = shape;
      }
    }
    bool own = true;
    if (KIND == Stream::COPY || KIND == Stream::WRITE) {
      runtime<KIND>();
      own = seconds(stream_, 3, [&] { runtime<KIND>(); }) >= least;
    }
    char note[96];
    snprintf(note, sizeof note, "%u blocks of %u threads, %d vectors a thread", best.blocks, best.threads, best.unroll);
    time(name, bytes, own ? note : "the runtime's own operation", [&] {
      if (own)
        launch(best);
      else
        runtime<KIND>();
    });
  }

  void run_runtime_copy(const char* name) {
    time(name, 2.0 * static_cast<double>(vectors_) * sizeof(float4), "cudaMemcpyAsync", [&] { runtime<Stream::COPY>(); });
  }

 private:
  template <typename Work>
  void time(const char* name, double bytes, const char* note, Work work) {
    std::vector<double> rates;
    for (int i = 0; i < batches_; ++i) rates.push_back(bytes * 5 / seconds(stream_, 5, work) / 1e9);
    report(name, {device_}, median(rates), "GB/s", *std::max_element(rates.begin(), rates.end()), note);
  }

  void launch(const Shape& shape) { shape.kernel<<<shape.blocks, shape.threads, 0, stream_>>>(a_, b_, c_, vectors_, 1); }

  template <Stream KIND>
  void runtime() {
    const size_t bytes = vectors_ * sizeof(float4);
    if (KIND == Stream::COPY)
      CUDA(cudaMemcpyAsync(a_, b_, bytes, cudaMemcpyDeviceToDevice, stream_));
    else
      CUDA(cudaMemsetAsync(a_, 1, bytes, stream_));
  }

  const int device_;
  const size_t vectors_;
  const int batches_;
  int processors_ = 0;
  cudaStream_t stream_ = nullptr;
  float4 *a_ = nullptr, *b_ = nullptr, *c_ = nullptr;
};

void test_pattern(int device, int passes, int flip) {
  size_t free = 0, total = 0;
  CUDA(cudaMemGetInfo(&free, &total));
  uint64_t* data = nullptr;
  size_t bytes = 0;
  // The runtime keeps some for itself, and large pages round up: ask for less until it fits.
  for (int percent = 98; percent >= 90 && !data; --percent) {
    bytes = free / 100 * percent / 4096 * 4096;
    const cudaError_t status = cudaMalloc(&data, bytes);
    if (status == cudaErrorMemoryAllocation) {
      data = nullptr;
      cudaGetLastError();
    } else {
      CUDA(status);
    }
  }
  if (!data) {
    skip("memory_tested", {device}, "%", "90 % of the free memory cannot be had in one piece");
    skip("memory_wrong", {device}, "errors", "90 % of the free memory cannot be had in one piece");
    return;
  }
  const size_t words = bytes / sizeof(uint64_t);
  Errors* errors = new_errors();
  for (int pass = 0; pass < passes; ++pass)
    for (const uint64_t inverted : {0ull, ~0ull}) {  // so that every bit is once 0 and once 1
      write_pattern<<<4096, 256>>>(data, words, pass + 1, inverted);
      if (flip && pass == 0 && !inverted) flip_bit<<<1, 1>>>(reinterpret_cast<unsigned char*>(data), bytes / 2);
      check_pattern<<<4096, 256>>>(data, words, pass + 1, inverted, errors);
      CUDA(cudaGetLastError());
      CUDA(cudaDeviceSynchronize());
    }
  const Errors seen = read_errors(errors);
  CUDA(cudaFree(errors));
  CUDA(cudaFree(data));
  report("memory_tested", {device}, 100.0 * static_cast<double>(bytes) / static_cast<double>(free), "%");
  char note[64] = "";
  if (seen.count) snprintf(note, sizeof note, "first at byte %llu of %zu", seen.first * 8, bytes);
  report("memory_wrong", {device}, static_cast<double>(seen.count), "errors", 0, note);
}

int main(int count, char** words) {
  const int device = static_cast<int>(number(count, words, "--device", 0));
  const int batches = std::max(1, static_cast<int>(number(count, words, "--batches", 10)));
  const int passes = std::max(1, static_cast<int>(number(count, words, "--passes", 2)));
  CUDA(cudaSetDevice(device));
  size_t free = 0, total = 0;
  CUDA(cudaMemGetInfo(&free, &total));
  const auto wanted = static_cast<size_t>(number(count, words, "--gib", 4) * (1ull << 30));
  {
    Bandwidth bandwidth(device, std::min(wanted, free / 4) / 4096 * 4096, batches);
    bandwidth.run<Stream::READ>("hbm_read", 1);
    bandwidth.run<Stream::WRITE>("hbm_write", 1);
    bandwidth.run<Stream::COPY>("hbm_copy", 2);
    bandwidth.run<Stream::TRIAD>("hbm_triad", 3);
    if (number(count, words, "--runtime", 0) != 0) bandwidth.run_runtime_copy("hbm_copy_runtime");
  }
  test_pattern(device, passes, static_cast<int>(number(count, words, "--flip", 0)));
  return 0;
}
