/* Stands in for libcuda.so.1: memory is the host's, the only kernel is axpy, PTX with the word "bad" does not compile. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
typedef int32_t R;

static int inited, retained, current;
static int dynamic_limit = 48 << 10;

EXPORT R cuInit(uint32_t flags) { inited = 1; return flags == 0 ? 0 : 1; }
EXPORT R cuDriverGetVersion(int *v) { *v = 12040; return 0; }
EXPORT R cuDeviceGetCount(int *n) { if (!inited) return 3; *n = 1; return 0; }
EXPORT R cuDeviceGet(int *d, int i) { *d = 7 + i; return 0; }
EXPORT R cuDeviceGetName(char *s, int n, int d) { snprintf(s, n, "stand-in %d", d); return 0; }
EXPORT R cuDeviceGetAttribute(int *v, int a, int d) {
  (void)d;
  switch (a) {
  case 75: *v = 9; return 0;
  case 76: *v = 0; return 0;
  case 16: *v = 132; return 0;
  case 97: *v = 232448; return 0;
  }
  return 1;
}
EXPORT R cuDevicePrimaryCtxRetain(void **c, int d) { (void)d; retained++; *c = (void *)0x1234; return 0; }
EXPORT R cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return --retained == 0 ? 0 : 201; }
EXPORT R cuCtxSetCurrent(void *c) { current = c == (void *)0x1234; return current ? 0 : 201; }
EXPORT R cuCtxSynchronize(void) { return current ? 0 : 201; }

EXPORT R cuModuleLoadDataEx(void **m, const char *image, unsigned n, int *options, void **values) {
  char *log = 0;
  size_t size = 0;
  for (unsigned i = 0; i < n; i++) {
    if (options[i] == 5) log = values[i];
    if (options[i] == 6) size = (size_t)values[i];
  }
  if (strstr(image, "bad")) { /* finds no end if the text has none */
    if (log) snprintf(log, size, "ptxas application ptx input, line 2; fatal : Parsing error near 'bad'");
    return 218;
  }
  *m = strdup(image);
  return 0;
}
EXPORT R cuModuleUnload(void *m) { free(m); return 0; }
EXPORT R cuModuleGetFunction(void **f, void *m, const char *name) {
  if (!strstr(m, name)) return 500;
  *f = m;
  return 0;
}
EXPORT R cuFuncSetAttribute(void *f, int a, int v) {
  (void)f;
  if (a != 8 || v > 232448) return 1;
  dynamic_limit = v;
  return 0;
}
EXPORT R cuFuncGetAttribute(int *v, int a, void *f) { (void)f; *v = a == 4 ? 18 : 0; return 0; }
EXPORT R cuMemAlloc_v2(uint64_t *p, size_t n) {
  if (n > (size_t)1 << 30) return 2;
  *p = (uint64_t)malloc(n);
  return 0;
}
EXPORT R cuMemFree_v2(uint64_t p) { free((void *)p); return 0; }
EXPORT R cuMemsetD8_v2(uint64_t p, unsigned char v, size_t n) { memset((void *)p, v, n); return 0; }
EXPORT R cuMemcpyHtoD_v2(uint64_t d, const void *s, size_t n) { memcpy((void *)d, s, n); return 0; }
EXPORT R cuMemcpyDtoH_v2(void *d, uint64_t s, size_t n) { memcpy(d, (void *)s, n); return 0; }

/* axpy(float *y, const float *x, int n, double a, long long b, float c): y = a*x + b + c + grid and block sizes */
EXPORT R cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                        void *stream, void **params, void **extra) {
  if (!f || stream || extra || !current) return 1;
  if ((int)shared > dynamic_limit) return 1;
  if (strstr(f, "fails")) return 719;
  float *y = *(float **)params[0];
  const float *x = *(const float **)params[1];
  int n = *(int *)params[2];
  double a = *(double *)params[3];
  long long b = *(long long *)params[4];
  float c = *(float *)params[5];
  float size = gx + 10 * gy + 100 * gz + 1000 * bx + 10000 * by + 100000 * bz + shared;
  for (int i = 0; i < n; i++) y[i] = (float)(a * x[i] + b + c) + size;
  return 0;
}
EXPORT R cuEventCreate(void **e, unsigned flags) { (void)flags; *e = malloc(1); return 0; }
EXPORT R cuEventDestroy_v2(void *e) { free(e); return 0; }
EXPORT R cuEventRecord(void *e, void *s) { (void)e; (void)s; return 0; }
EXPORT R cuEventSynchronize(void *e) { (void)e; return 0; }
EXPORT R cuEventElapsedTime(float *ms, void *a, void *b) { (void)a; (void)b; *ms = 1.5f; return 0; }
EXPORT R cuGetErrorName(R r, const char **s) { *s = r == 218 ? "CUDA_ERROR_INVALID_PTX" : r == 2 ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OTHER"; return 0; }
EXPORT R cuGetErrorString(R r, const char **s) { *s = r == 218 ? "a PTX JIT compilation failed" : 0; return r == 218 ? 0 : 1; }
