// What every program here shares: arguments, errors, timing, and one line of JSON for each result.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "kernels.cuh"

// Ends the program with a line that names what failed. The driver takes it as the reason of a failed benchmark.
[[noreturn]] inline void stop(const char* format, ...) {
  char text[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  for (char* c = text; *c; ++c)
    if (*c == '"' || *c == '\\' || static_cast<unsigned char>(*c) < 32) *c = ' ';
  printf("{\"error\":\"%s\"}\n", text);
  fflush(stdout);
  exit(1);
}

#define CUDA(call)                                                                                      \
  do {                                                                                                  \
    const cudaError_t status_ = (call);                                                                 \
    if (status_ != cudaSuccess) stop("%s: %s (%s)", #call, cudaGetErrorName(status_), cudaGetErrorString(status_)); \
  } while (0)

// The value after `--name`, or the default.
inline const char* argument(int count, char** words, const char* name, const char* otherwise) {
  for (int i = 1; i + 1 < count; ++i)
    if (!strcmp(words[i], name)) return words[i + 1];
  return otherwise;
}

inline double number(int count, char** words, const char* name, double otherwise) {
  const char* text = argument(count, words, name, nullptr);
  return text ? atof(text) : otherwise;
}

inline std::string list(const std::vector<int>& devices) {
  std::string text;
  for (int device : devices) text += (text.empty() ? "" : ",") + std::to_string(device);
  return "[" + text + "]";
}

// One result. `peak` is the best single batch where the value is a median; 0 where that means nothing.
inline void report(const char* name, const std::vector<int>& devices, double value, const char* unit, double peak = 0,
                   const char* note = "") {
  printf("{\"name\":\"%s\",\"devices\":%s,\"value\":%.6g,\"unit\":\"%s\",\"peak\":%.6g,\"note\":\"%s\"}\n", name,
         list(devices).c_str(), value, unit, peak, note);
  fflush(stdout);
}

// A benchmark that this GPU cannot run.
inline void skip(const char* name, const std::vector<int>& devices, const char* unit, const char* note) {
  printf("{\"name\":\"%s\",\"devices\":%s,\"value\":null,\"unit\":\"%s\",\"peak\":0,\"note\":\"%s\"}\n", name,
         list(devices).c_str(), unit, note);
  fflush(stdout);
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t half = values.size() / 2;
  return values.size() % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Seconds that `work` takes on `stream`, queued `times` times.
template <typename Work>
double seconds(cudaStream_t stream, int times, Work work) {
  cudaEvent_t begin, end;
  CUDA(cudaEventCreate(&begin));
  CUDA(cudaEventCreate(&end));
  CUDA(cudaEventRecord(begin, stream));
  for (int i = 0; i < times; ++i) work();
  CUDA(cudaEventRecord(end, stream));
  CUDA(cudaEventSynchronize(end));
  CUDA(cudaGetLastError());
  float milliseconds = 0;
  CUDA(cudaEventElapsedTime(&milliseconds, begin, end));
  CUDA(cudaEventDestroy(begin));
  CUDA(cudaEventDestroy(end));
  return milliseconds / 1e3;
}

inline Errors* new_errors() {
  Errors* errors;
  CUDA(cudaMalloc(&errors, sizeof *errors));
  const Errors none = {0, ~0ull};
  CUDA(cudaMemcpy(errors, &none, sizeof none, cudaMemcpyHostToDevice));
  return errors;
}

inline Errors read_errors(const Errors* errors) {
  Errors seen;
  CUDA(cudaMemcpy(&seen, errors, sizeof seen, cudaMemcpyDeviceToHost));
  return seen;
}
