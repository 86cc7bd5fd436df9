// Matrix products on one GPU through cuBLASLt: their rate, and whether every bit is right.
//   gemm --device 0 --seconds 2 --runs 50 --size 8192 [--only bf16] [--flip 1]
// BF16 and FP8 are timed for `seconds`; TF32 and FP64 are spot checks of an eighth of that. In each format
//   NAME          the rate on normally distributed data, median over batches
//   NAME_wrong    elements that differ from an exact reference; the product is of small integers, so there is no rounding
//   NAME_unstable runs whose result is not bitwise that of the first, on the timed data
// --flip 1 turns one bit of one element over before each verification, for tests of the verification.
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "program.cuh"

#define CUBLAS(call)                                                                             \
  do {                                                                                           \
    const cublasStatus_t status_ = (call);                                                       \
    if (status_ != CUBLAS_STATUS_SUCCESS) stop("%s: %s", #call, cublasLtGetStatusString(status_)); \
  } while (0)

constexpr size_t WORKSPACE = 64 << 20;
constexpr int CANDIDATES = 16;

template <>
__device__ double from_double<double>(double value) { return value; }
template <>
__device__ float from_double<float>(double value) { return static_cast<float>(value); }
template <>
__device__ __nv_bfloat16 from_double<__nv_bfloat16>(double value) {
  return __float2bfloat16(static_cast<float>(value));
}
template <>
__device__ __nv_fp8_e4m3 from_double<__nv_fp8_e4m3>(double value) { return __nv_fp8_e4m3(static_cast<float>(value)); }

template <>
__device__ double to_double<double>(double value) { return value; }
template <>
__device__ double to_double<float>(float value) { return value; }
template <>
__device__ double to_double<__nv_bfloat16>(__nv_bfloat16 value) { return __bfloat162float(value); }

__global__ void add_digest(const unsigned char* bytes, size_t words, unsigned long long* digest) {
  const uint64_t* data = reinterpret_cast<const uint64_t*>(bytes);
  unsigned long long sum = 0;
  for (size_t i = blockIdx.x * static_cast<size_t>(blockDim.x) + threadIdx.x; i < words;
       i += static_cast<size_t>(gridDim.x) * blockDim.x)
    sum += digest_part(i, data[i]);
  for (int lane = 16; lane; lane /= 2) sum += __shfl_down_sync(~0u, sum, lane);
  if (threadIdx.x % 32 == 0) atomicAdd(digest, sum);
}

struct Settings {
  int device;
  double seconds;
  int runs;
  int flip;
};

template <typename In, typename Out>
class Product {
 public:
  Product(const char* name, cudaDataType_t in, cudaDataType_t out, cublasComputeType_t compute, cudaDataType_t scale,
          int size, int span)
      : name_(name), scale_(scale), size_(size), span_(span) {
    const size_t elements = static_cast<size_t>(size) * size;
    CUDA(cudaMalloc(&a_, elements * sizeof(In)));
    CUDA(cudaMalloc(&b_, elements * sizeof(In)));
    CUDA(cudaMalloc(&d_, elements * sizeof(Out)));
    CUDA(cudaMalloc(&workspace_, WORKSPACE));
    CUDA(cudaStreamCreate(&stream_));
    CUBLAS(cublasLtCreate(&handle_));
    CUBLAS(cublasLtMatmulDescCreate(&operation_, compute, scale));
    const cublasOperation_t transposed = CUBLAS_OP_T;
    CUBLAS(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof transposed));
    if (in == CUDA_R_8F_E4M3) {
      const int8_t fast = 1;  // what training uses; sums of our integers stay exact in it
      CUBLAS(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast, sizeof fast));
    }
    CUBLAS(cublasLtMatrixLayoutCreate(&input_, in, size, size, size));
    CUBLAS(cublasLtMatrixLayoutCreate(&output_, out, size, size, size));
  }

  ~Product() {
    cublasLtMatrixLayoutDestroy(output_);
    cublasLtMatrixLayoutDestroy(input_);
    cublasLtMatmulDescDestroy(operation_);
    cublasLtDestroy(handle_);
    cudaStreamDestroy(stream_);
    for (void* memory : {static_cast<void*>(a_), static_cast<void*>(b_), static_cast<void*>(d_), workspace_})
      cudaFree(memory);
  }

  void run(const Settings& settings) {
    const std::vector<int> devices = {settings.device};
    const std::string wrong = std::string(name_) + "_wrong", unstable = std::string(name_) + "_unstable";
    fill_inputs(0);
    if (!choose()) {
      const char* reason = "cuBLASLt has no algorithm for it on this GPU";
      skip(name_, devices, "TFLOPS", reason);
      skip(unstable.c_str(), devices, "errors", reason);
      skip(wrong.c_str(), devices, "errors", reason);
      return;
    }
    time(settings, devices);
    report(unstable.c_str(), devices, unequal_runs(settings), "errors");
    fill_inputs(span_);
    report(wrong.c_str(), devices, wrong_elements(settings), "errors");
  }

 private:
  void fill_inputs(int span) {
    const size_t elements = static_cast<size_t>(size_) * size_;
    fill<<<1024, 256, 0, stream_>>>(a_, elements, SEED_A, span);
    fill<<<1024, 256, 0, stream_>>>(b_, elements, SEED_B, span);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(stream_));
  }

  cublasStatus_t multiply(const cublasLtMatmulAlgo_t& algorithm) {
    const double one = 1, zero = 0;
    const float one_float = 1, zero_float = 0;
    const bool wide = scale_ == CUDA_R_64F;
    const void* alpha = wide ? static_cast<const void*>(&one) : &one_float;
    const void* beta = wide ? static_cast<const void*>(&zero) : &zero_float;
    return cublasLtMatmul(handle_, operation_, alpha, a_, input_, b_, input_, beta, d_, output_, d_, output_, &algorithm,
                          workspace_, WORKSPACE, stream_);
  }

  // The fastest algorithm that adds in a fixed order: none that splits the inner dimension, whose parts are added in
  // whatever order they arrive.
  bool choose() {
    cublasLtMatmulPreference_t preference;
    CUBLAS(cublasLtMatmulPreferenceCreate(&preference));
    const size_t workspace = WORKSPACE;
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace,
                                                sizeof workspace));
    const uint32_t none = CUBLASLT_REDUCTION_SCHEME_NONE;
    CUBLAS(cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &none,
                                                sizeof none));
    cublasLtMatmulHeuristicResult_t found[CANDIDATES];
    int count = 0;
    const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(handle_, operation_, input_, input_, output_, output_,
                                                                 preference, CANDIDATES, found, &count);
    CUBLAS(cublasLtMatmulPreferenceDestroy(preference));
    if (status == CUBLAS_STATUS_NOT_SUPPORTED || status == CUBLAS_STATUS_ARCH_MISMATCH) return false;
    CUBLAS(status);
    double best = 0;
    for (int i = 0; i < count; ++i) {
      int32_t parts = 0;
      size_t written = 0;
      if (found[i].state != CUBLAS_STATUS_SUCCESS ||
          cublasLtMatmulAlgoConfigGetAttribute(&found[i].algo, CUBLASLT_ALGO_CONFIG_SPLITK_NUM, &parts, sizeof parts,
                                               &written) != CUBLAS_STATUS_SUCCESS ||
          parts > 1 || multiply(found[i].algo) != CUBLAS_STATUS_SUCCESS)
        continue;
      const double taken = seconds(stream_, 3, [&] { CUBLAS(multiply(found[i].algo)); });
      if (best == 0 || taken < best) {
        best = taken;
        algorithm_ = found[i].algo;
      }
    }
    once_ = best / 3;
    return best > 0;
  }

  void time(const Settings& settings, const std::vector<int>& devices) {
    const double operations = 2.0 * size_ * size_ * size_;
    const int batch = std::max(1, static_cast<int>(0.05 / once_));
    std::vector<double> rates;
    double taken = 0, best = 0;
    while (taken < settings.seconds || rates.size() < 5) {
      const double spent = seconds(stream_, batch, [&] { CUBLAS(multiply(algorithm_)); });
      taken += spent;
      rates.push_back(operations * batch / spent / 1e12);
      best = std::max(best, rates.back());
    }
    // Clocks settle in the first batches.
    rates.erase(rates.begin(), rates.begin() + rates.size() / 5);
    report(name_, devices, median(rates), "TFLOPS", best);
  }

  double unequal_runs(const Settings& settings) {
    unsigned long long* digests;
    CUDA(cudaMalloc(&digests, settings.runs * sizeof *digests));
    CUDA(cudaMemsetAsync(digests, 0, settings.runs * sizeof *digests, stream_));
    const size_t bytes = static_cast<size_t>(size_) * size_ * sizeof(Out);
    for (int i = 0; i < settings.runs; ++i) {
      CUBLAS(multiply(algorithm_));
      if (settings.flip && i == settings.runs / 2)
        flip_bit<<<1, 1, 0, stream_>>>(reinterpret_cast<unsigned char*>(d_), bytes / 2);
      add_digest<<<1024, 256, 0, stream_>>>(reinterpret_cast<const unsigned char*>(d_), bytes / 8, digests + i);
    }
    CUDA(cudaGetLastError());
    std::vector<unsigned long long> seen(settings.runs);
    CUDA(cudaStreamSynchronize(stream_));
    CUDA(cudaMemcpy(seen.data(), digests, settings.runs * sizeof *digests, cudaMemcpyDeviceToHost));
    CUDA(cudaFree(digests));
    return static_cast<double>(seen.size() - std::count(seen.begin(), seen.end(), seen.front()));
  }

  double wrong_elements(const Settings& settings) {
    Errors* errors = new_errors();
    const size_t bytes = static_cast<size_t>(size_) * size_ * sizeof(Out);
    CUBLAS(multiply(algorithm_));
    if (settings.flip) flip_bit<<<1, 1, 0, stream_>>>(reinterpret_cast<unsigned char*>(d_), bytes / 2);
    compare<<<dim3(size_ / TILE, size_ / TILE), dim3(TILE, TILE), 0, stream_>>>(d_, size_, span_, errors);
    CUDA(cudaGetLastError());
    CUDA(cudaStreamSynchronize(stream_));
    const Errors seen = read_errors(errors);
    CUDA(cudaFree(errors));
    return static_cast<double>(seen.count);
  }

  const char* name_;
  const cudaDataType_t scale_;
  const int size_, span_;
  In *a_ = nullptr, *b_ = nullptr;
  Out* d_ = nullptr;
  void* workspace_ = nullptr;
  cudaStream_t stream_ = nullptr;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  cublasLtMatrixLayout_t input_ = nullptr, output_ = nullptr;
  cublasLtMatmulAlgo_t algorithm_ = {};
  double once_ = 0;
};

int main(int count, char** words) {
  Settings settings = {};
  settings.device = static_cast<int>(number(count, words, "--device", 0));
  settings.seconds = number(count, words, "--seconds", 2);
  settings.runs = std::max(2, static_cast<int>(number(count, words, "--runs", 50)));
  settings.flip = static_cast<int>(number(count, words, "--flip", 0));
  const int size = std::max(8, static_cast<int>(number(count, words, "--size", 8192)) / 128) * 128;
  const std::string only = argument(count, words, "--only", "");
  CUDA(cudaSetDevice(settings.device));
  Settings spot = settings;
  spot.seconds /= 8;

  if (only.empty() || only == "bf16")
    Product<__nv_bfloat16, __nv_bfloat16>("gemm_bf16", CUDA_R_16BF, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, size, 4)
        .run(settings);
  // Tensor cores of the Hopper generation may keep as few as 14 bits of a sum in FP8: with -1, 0 and 1 that is exact.
  if (only.empty() || only == "fp8")
    Product<__nv_fp8_e4m3, __nv_bfloat16>("gemm_fp8", CUDA_R_8F_E4M3, CUDA_R_16BF, CUBLAS_COMPUTE_32F, CUDA_R_32F, size, 1)
        .run(settings);
  if (only.empty() || only == "tf32")
    Product<float, float>("gemm_tf32", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F_FAST_TF32, CUDA_R_32F, size / 2, 4)
        .run(spot);
  if (only.empty() || only == "fp64")
    Product<double, double>("gemm_fp64", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, CUDA_R_64F, size / 4, 4).run(spot);
  return 0;
}
