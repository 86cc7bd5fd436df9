// NCCL's collectives between the GPUs of one node, or of several: one process on each node drives all of its GPUs.
//   collectives --mib 1024 --batches 5                                       one node
//   collectives --mib 8192 --batches 5 --nodes 4 --node 0 --id-file FILE     the first of four writes the id to FILE,
//   collectives --mib 8192 --batches 5 --nodes 4 --node 1 --id HEX           whose text the others are given
//   all_reduce, all_gather, reduce_scatter, all_to_all   bus bandwidth in GB/s
//   NAME_wrong                                           elements that differ from the one right result
// --mib is the size of the largest buffer of one GPU. Bus bandwidth is the size over the time, times 2(n-1)/n for the
// all-reduce and (n-1)/n for the others, with n GPUs: the definition of NVIDIA's nccl-tests.
#include <nccl.h>

#include <chrono>

#include "program.cuh"

#define NCCL(call)                                                                                     \
  do {                                                                                                 \
    const ncclResult_t status_ = (call);                                                               \
    if (status_ != ncclSuccess) stop("%s: %s (%s)", #call, ncclGetErrorString(status_), ncclGetLastError(nullptr)); \
  } while (0)

struct Gpu {
  int device, rank;
  float *send, *receive;
  cudaStream_t stream;
  ncclComm_t comm;
  Errors* errors;
};

class Node {
 public:
  Node(size_t bytes, int nodes, int node, const char* id_text, const char* id_file) : nodes_(nodes) {
    int devices = 0;
    CUDA(cudaGetDeviceCount(&devices));
    ranks_ = devices * nodes;
    block_ = bytes / sizeof(float) / ranks_;
    ncclUniqueId id;
    if (nodes > 1 && node > 0)
      read_id(id_text, &id);
    else
      NCCL(ncclGetUniqueId(&id));
    if (nodes > 1 && node == 0) write_id(id, id_file);
    gpus_.resize(devices);
    for (int device = 0; device < devices; ++device) {
      Gpu& gpu = gpus_[device];
      gpu.device = device;
      gpu.rank = node * devices + device;
      CUDA(cudaSetDevice(device));
      CUDA(cudaMalloc(&gpu.send, block_ * ranks_ * sizeof(float)));
      CUDA(cudaMalloc(&gpu.receive, block_ * ranks_ * sizeof(float)));
      CUDA(cudaStreamCreate(&gpu.stream));
      gpu.errors = new_errors();
      fill_rank<<<1024, 256, 0, gpu.stream>>>(gpu.send, block_ * ranks_, gpu.rank);
      CUDA(cudaGetLastError());
    }
    NCCL(ncclGroupStart());
    for (Gpu& gpu : gpus_) {
      CUDA(cudaSetDevice(gpu.device));
      NCCL(ncclCommInitRank(&gpu.comm, ranks_, id, gpu.rank));
    }
    NCCL(ncclGroupEnd());
  }

  ~Node() {
    for (Gpu& gpu : gpus_) {
      cudaSetDevice(gpu.device);
      ncclCommDestroy(gpu.comm);
      for (void* memory : {static_cast<void*>(gpu.send), static_cast<void*>(gpu.receive), static_cast<void*>(gpu.errors)})
        cudaFree(memory);
      cudaStreamDestroy(gpu.stream);
    }
  }

  int ranks() const { return ranks_; }

  void run(const char* name, Kind kind, int batches) {
    std::vector<int> devices;
    for (const Gpu& gpu : gpus_) devices.push_back(gpu.device);
    for (const Gpu& gpu : gpus_) {
      CUDA(cudaSetDevice(gpu.device));
      CUDA(cudaMemset(gpu.receive, 0xFF, block_ * ranks_ * sizeof(float)));  // NaN: what never arrived counts as wrong
      CUDA(cudaMemset(gpu.errors, 0, sizeof(Errors)));
      CUDA(cudaDeviceSynchronize());
    }
    communicate(kind, 2);
    std::vector<double> rates;
    const double factor = (kind == Kind::ALL_REDUCE ? 2.0 : 1.0) * (ranks_ - 1) / ranks_;
    for (int i = 0; i < batches; ++i) {
      constexpr int TIMES = 5;
      const double taken = communicate(kind, TIMES) / TIMES;
      rates.push_back(static_cast<double>(block_) * ranks_ * sizeof(float) / taken / 1e9 * factor);
    }
    const double peak = *std::max_element(rates.begin(), rates.end());
    char note[64];
    snprintf(note, sizeof note, "%zu bytes, %d GPUs, %d nodes", block_ * ranks_ * sizeof(float), ranks_, nodes_);
    report(name, devices, median(rates), "GB/s", peak, note);
    const size_t elements = kind == Kind::REDUCE_SCATTER ? block_ : block_ * ranks_;
    double wrong = 0;
    for (const Gpu& gpu : gpus_) {
      CUDA(cudaSetDevice(gpu.device));
      check_rank<<<1024, 256, 0, gpu.stream>>>(gpu.receive, elements, block_, kind, gpu.rank, ranks_, gpu.errors);
      CUDA(cudaGetLastError());
      CUDA(cudaStreamSynchronize(gpu.stream));
      wrong += static_cast<double>(read_errors(gpu.errors).count);
    }
    report((std::string(name) + "_wrong").c_str(), devices, wrong, "errors");
  }

 private:
  // Seconds by the host's clock until every GPU of this node is through: what a training step waits for.
  double communicate(Kind kind, int times) {
    const auto begin = std::chrono::steady_clock::now();
    for (int i = 0; i < times; ++i) {
      NCCL(ncclGroupStart());
      for (const Gpu& gpu : gpus_) queue(kind, gpu);
      NCCL(ncclGroupEnd());
    }
    for (const Gpu& gpu : gpus_) {
      CUDA(cudaSetDevice(gpu.device));
      CUDA(cudaStreamSynchronize(gpu.stream));
      ncclResult_t later = ncclSuccess;
      NCCL(ncclCommGetAsyncError(gpu.comm, &later));
      NCCL(later);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

  void queue(Kind kind, const Gpu& gpu) {
    switch (kind) {
      case Kind::ALL_REDUCE:
        NCCL(ncclAllReduce(gpu.send, gpu.receive, block_ * ranks_, ncclFloat, ncclSum, gpu.comm, gpu.stream));
        break;
      case Kind::ALL_GATHER:
        NCCL(ncclAllGather(gpu.send, gpu.receive, block_, ncclFloat, gpu.comm, gpu.stream));
        break;
      case Kind::REDUCE_SCATTER:
        NCCL(ncclReduceScatter(gpu.send, gpu.receive, block_, ncclFloat, ncclSum, gpu.comm, gpu.stream));
        break;
      case Kind::ALL_TO_ALL:
        for (int other = 0; other < ranks_; ++other) {
          NCCL(ncclSend(gpu.send + other * block_, block_, ncclFloat, other, gpu.comm, gpu.stream));
          NCCL(ncclRecv(gpu.receive + other * block_, block_, ncclFloat, other, gpu.comm, gpu.stream));
        }
        break;
    }
  }

  // In one move: whoever waits for the file never sees half of it.
  static void write_id(const ncclUniqueId& id, const std::string& path) {
    const std::string part = path + ".part";
    FILE* file = fopen(part.c_str(), "w");
    if (!file) stop("%s cannot be written", part.c_str());
    for (const char byte : id.internal) fprintf(file, "%02x", static_cast<unsigned>(static_cast<unsigned char>(byte)));
    if (fclose(file) || rename(part.c_str(), path.c_str())) stop("%s cannot be written", path.c_str());
  }

  static void read_id(const char* text, ncclUniqueId* id) {
    constexpr char DIGITS[] = "0123456789abcdef";
    if (strlen(text) != 2 * sizeof id->internal) stop("--id has to have %zu hexadecimal digits", 2 * sizeof id->internal);
    for (size_t i = 0; i < sizeof id->internal; ++i) {
      const char *high = strchr(DIGITS, text[2 * i]), *low = strchr(DIGITS, text[2 * i + 1]);
      if (!high || !low) stop("--id has another character than 0 to 9 and a to f");
      id->internal[i] = static_cast<char>((high - DIGITS) * 16 + (low - DIGITS));
    }
  }

  const int nodes_;
  int ranks_ = 0;
  size_t block_ = 0;
  std::vector<Gpu> gpus_;
};

int main(int count, char** words) {
  const auto bytes = static_cast<size_t>(number(count, words, "--mib", 1024)) << 20;
  const int batches = std::max(1, static_cast<int>(number(count, words, "--batches", 5)));
  Node node(bytes, std::max(1, static_cast<int>(number(count, words, "--nodes", 1))),
            static_cast<int>(number(count, words, "--node", 0)), argument(count, words, "--id", ""),
            argument(count, words, "--id-file", "id"));
  node.run("all_reduce", Kind::ALL_REDUCE, batches);
  node.run("all_gather", Kind::ALL_GATHER, batches);
  node.run("reduce_scatter", Kind::REDUCE_SCATTER, batches);
  node.run("all_to_all", Kind::ALL_TO_ALL, batches);
  return 0;
}
