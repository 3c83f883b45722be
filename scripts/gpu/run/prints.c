// What `vector.print` and LLVM's integration tests call, without MLIR's libraries.
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>

void printI64(int64_t value) { printf("%" PRId64, value); }
void printU64(uint64_t value) { printf("%" PRIu64, value); }
void printF32(float value) { printf("%g", value); }
void printF64(double value) { printf("%lg", value); }
void printString(const char *text) { fputs(text, stdout); }
void printOpen(void) { fputs("( ", stdout); }
void printClose(void) { fputs(" )", stdout); }
void printComma(void) { fputs(", ", stdout); }
void printNewline(void) { fputc('\n', stdout); }

typedef struct {
  int32_t *allocated, *aligned;
  int64_t offset, size, stride;
} Descriptor;

// An unranked memref of one dimension.
void printMemrefI32(int64_t rank, const Descriptor *memref) {
  if (rank != 1) {
    printf("a memref of rank %" PRId64 "\n", rank);
    return;
  }
  printf("[");
  for (int64_t i = 0; i < memref->size; ++i)
    printf("%s%" PRId32, i ? ", " : "", memref->aligned[memref->offset + i * memref->stride]);
  printf("]\n");
}
