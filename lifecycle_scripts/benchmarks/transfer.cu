// What moves between the host and the GPUs, and between the GPUs, of one node.
//   transfer --mib 256 --batches 5 --reads 20000
//   host_to_device, device_to_host   GB/s from and to pinned memory, each GPU alone
//   host_latency                     us for 8 bytes to the GPU and a wait for them
//   pair, pair_both                  GB/s from the first to the second GPU, and the sum of both directions at once
//   pair_latency                     us for one dependent read of the second GPU's memory by the first
//   pair_wrong                       words of 8 bytes that arrived different
#include "program.cuh"

struct Gpu {
  int device;
  uint64_t *out, *in, *ring;
  cudaStream_t stream;
  Errors* errors;
};

template <typename Work>
void bandwidth(const char* name, const std::vector<int>& devices, cudaStream_t stream, double bytes, int batches, Work work) {
  work();
  std::vector<double> rates;
  for (int i = 0; i < batches; ++i) rates.push_back(bytes * 4 / seconds(stream, 4, work) / 1e9);
  report(name, devices, median(rates), "GB/s", *std::max_element(rates.begin(), rates.end()));
}

void host(const Gpu& gpu, size_t bytes, int batches) {
  CUDA(cudaSetDevice(gpu.device));
  void* pinned;
  CUDA(cudaHostAlloc(&pinned, bytes, cudaHostAllocDefault));
  memset(pinned, 1, bytes);
  bandwidth("host_to_device", {gpu.device}, gpu.stream, static_cast<double>(bytes), batches,
            [&] { CUDA(cudaMemcpyAsync(gpu.in, pinned, bytes, cudaMemcpyHostToDevice, gpu.stream)); });
  bandwidth("device_to_host", {gpu.device}, gpu.stream, static_cast<double>(bytes), batches,
            [&] { CUDA(cudaMemcpyAsync(pinned, gpu.in, bytes, cudaMemcpyDeviceToHost, gpu.stream)); });
  std::vector<double> waits;
  for (int i = 0; i < 200; ++i)
    waits.push_back(seconds(gpu.stream, 1, [&] {
      CUDA(cudaMemcpyAsync(gpu.in, pinned, 8, cudaMemcpyHostToDevice, gpu.stream));
    }));
  report("host_latency", {gpu.device}, median(waits) * 1e6, "us");
  CUDA(cudaFreeHost(pinned));
}

// Copies run on the stream of the GPU that sends.
void pair(const Gpu& from, const Gpu& to, size_t bytes, int batches, int reads) {
  const std::vector<int> devices = {from.device, to.device};
  const size_t words = bytes / sizeof(uint64_t);
  const uint64_t seed = 1 + static_cast<uint64_t>(from.device);

  CUDA(cudaSetDevice(to.device));
  CUDA(cudaMemset(to.in, 0, bytes));
  CUDA(cudaMemset(to.errors, 0, sizeof(Errors)));
  CUDA(cudaDeviceSynchronize());
  CUDA(cudaSetDevice(from.device));
  write_pattern<<<1024, 256, 0, from.stream>>>(from.out, words, seed, 0);
  CUDA(cudaGetLastError());
  const auto copy = [&](const Gpu& a, const Gpu& b) {
    CUDA(cudaMemcpyPeerAsync(b.in, b.device, a.out, a.device, bytes, a.stream));
  };
  bandwidth("pair", devices, from.stream, static_cast<double>(bytes), batches, [&] { copy(from, to); });

  CUDA(cudaStreamSynchronize(from.stream));
  CUDA(cudaSetDevice(to.device));
  check_pattern<<<1024, 256, 0, to.stream>>>(to.in, words, seed, 0, to.errors);
  CUDA(cudaGetLastError());
  CUDA(cudaStreamSynchronize(to.stream));
  report("pair_wrong", devices, static_cast<double>(read_errors(to.errors).count), "errors");

  if (from.device < to.device) {
    cudaEvent_t begin, back;
    CUDA(cudaEventCreateWithFlags(&back, cudaEventDisableTiming));
    CUDA(cudaSetDevice(from.device));
    CUDA(cudaEventCreateWithFlags(&begin, cudaEventDisableTiming));
    // Both directions start after `begin`, and the sender's stream ends after both.
    bandwidth("pair_both", devices, from.stream, 2.0 * static_cast<double>(bytes), batches, [&] {
      CUDA(cudaEventRecord(begin, from.stream));
      CUDA(cudaStreamWaitEvent(to.stream, begin, 0));
      copy(from, to);
      CUDA(cudaSetDevice(to.device));
      copy(to, from);
      CUDA(cudaEventRecord(back, to.stream));
      CUDA(cudaSetDevice(from.device));
      CUDA(cudaStreamWaitEvent(from.stream, back, 0));
    });
    CUDA(cudaEventDestroy(begin));
    CUDA(cudaEventDestroy(back));
  }

  CUDA(cudaSetDevice(from.device));
  int direct = 0;
  CUDA(cudaDeviceCanAccessPeer(&direct, from.device, to.device));
  if (!direct) {
    skip("pair_latency", devices, "us", "the GPUs cannot read each other's memory");
    return;
  }
  const auto chase = [&] { follow<<<1, 1, 0, from.stream>>>(to.ring, reads, from.in); };
  chase();
  report("pair_latency", devices, seconds(from.stream, 1, chase) / reads * 1e6, "us");
}

int main(int count, char** words) {
  const size_t bytes = static_cast<size_t>(number(count, words, "--mib", 256)) << 20;
  const int batches = std::max(1, static_cast<int>(number(count, words, "--batches", 5)));
  const int reads = std::max(1, static_cast<int>(number(count, words, "--reads", 20000)));
  int devices = 0;
  CUDA(cudaGetDeviceCount(&devices));
  std::vector<Gpu> gpus(devices);
  for (int device = 0; device < devices; ++device) {
    Gpu& gpu = gpus[device];
    gpu.device = device;
    CUDA(cudaSetDevice(device));
    CUDA(cudaMalloc(&gpu.out, bytes));
    CUDA(cudaMalloc(&gpu.in, bytes));
    CUDA(cudaMalloc(&gpu.ring, RING * 16 * sizeof(uint64_t)));
    CUDA(cudaStreamCreate(&gpu.stream));
    gpu.errors = new_errors();
    link_ring<<<64, 256>>>(gpu.ring);
    CUDA(cudaGetLastError());
    CUDA(cudaDeviceSynchronize());
    for (int other = 0; other < devices; ++other) {
      int direct = 0;
      if (other != device) CUDA(cudaDeviceCanAccessPeer(&direct, device, other));
      if (direct) CUDA(cudaDeviceEnablePeerAccess(other, 0));
    }
  }
  for (const Gpu& gpu : gpus) host(gpu, bytes, batches);
  for (const Gpu& from : gpus)
    for (const Gpu& to : gpus)
      if (from.device != to.device) pair(from, to, bytes, batches, reads);
  return 0;
}
