/* Peak rates of the instructions that matrix products consist of, in Gop/s of two threads: fp32 multiply-adds, and where
the compiler and the processor have them `vdpbf16ps` and `vpdpbusd`. Each loop has 12 independent sums in registers.

cc -O3 -funroll-all-loops -march=native peak.c -o peak -lpthread && ./peak THREADS  ->  {"fp32": ..., "bf16": ..., "int8": ...} */
#include <immintrin.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SUMS 12
#define LOOPS 20000000L
#define ROUNDS 3

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

#if defined(__AVX512F__)
typedef __m512 Floats;
#define LANES 16
#define SET _mm512_set1_ps
#define MULTIPLY_ADD _mm512_fmadd_ps
#else
typedef __m256 Floats;
#define LANES 8
#define SET _mm256_set1_ps
#define MULTIPLY_ADD _mm256_fmadd_ps
#endif

/* Sums of type T from `initial`, each replaced by `expression` of a[i] in every loop. */
#define LOOP(NAME, T, initial, expression)                                         \
  __attribute__((noinline)) static void NAME(void) {                               \
    T a[SUMS];                                                                     \
    _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) a[i] = initial;                                 \
    for (long k = 0; k < LOOPS; k++)                                               \
      _Pragma("GCC unroll 12") for (int i = 0; i < SUMS; i++) { a[i] = expression; __asm__ volatile("" : "+v"(a[i])); } \
  }
LOOP(fp32, Floats, SET((float)i), MULTIPLY_ADD(SET(0.999f), a[i], SET(1e-3f)))
#if defined(__AVX512BF16__)
LOOP(bf16, __m512, SET((float)i), _mm512_dpbf16_ps(a[i], (__m512bh)_mm512_set1_epi16(0x3f80), (__m512bh)_mm512_set1_epi16(0x3c00)))
#endif
#if defined(__AVX512VNNI__)
LOOP(int8, __m512i, _mm512_set1_epi32(i), _mm512_dpbusd_epi32(a[i], _mm512_set1_epi8(3), _mm512_set1_epi8(1)))
#endif

static const struct { const char *name; void (*run)(void); double operations; } LOOPS_OF[] = {
  {"fp32", fp32, 2. * LANES},
#if defined(__AVX512BF16__)
  {"bf16", bf16, 4. * LANES},
#endif
#if defined(__AVX512VNNI__)
  {"int8", int8, 8. * LANES},
#endif
};
enum { KINDS = sizeof LOOPS_OF / sizeof *LOOPS_OF };

static void *measure(void *rates) {
  for (int kind = 0; kind < KINDS; kind++) {
    double best = 1e9;
    for (int r = 0; r < ROUNDS; r++) {
      double start = now();
      LOOPS_OF[kind].run();
      double seconds = now() - start;
      if (seconds < best) best = seconds;
    }
    ((double *)rates)[kind] = LOOPS * SUMS * LOOPS_OF[kind].operations / best / 1e9;
  }
  return NULL;
}

int main(int n, char **arguments) {
  int threads = n > 1 ? atoi(arguments[1]) : 1;
  pthread_t thread[threads];
  double rates[threads][KINDS];
  for (int i = 0; i < threads; i++) pthread_create(&thread[i], NULL, measure, rates[i]);
  for (int i = 0; i < threads; i++) pthread_join(thread[i], NULL);
  for (int kind = 0; kind < KINDS; kind++) {
    double sum = 0;
    for (int i = 0; i < threads; i++) sum += rates[i][kind];
    printf("%s\"%s\": %.0f", kind ? ", " : "{", LOOPS_OF[kind].name, sum);
  }
  puts("}");
}
