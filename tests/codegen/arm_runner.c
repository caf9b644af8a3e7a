// Runs AArch64 kernels under an emulator without any C library: reads calls from standard input,
// writes what is in memory afterwards to standard output. All numbers are 64-bit.
//   in:  image size, image, entry offset, begin, end, scratch bytes, count of dims, dims,
//        count of buffers, for each buffer its size and content
//   out: status, the buffers' contents
typedef unsigned long u64;
typedef unsigned char u8;

enum { kRead = 63, kWrite = 64, kExit = 93, kUnmap = 215, kMap = 222, kProtect = 226 };
enum { kPage = 4096, kMaxBuffers = 16, kMaxDims = 16 };

static long call6(long number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f) {
  register long x8 __asm__("x8") = number;
  register u64 x0 __asm__("x0") = a;
  register u64 x1 __asm__("x1") = b;
  register u64 x2 __asm__("x2") = c;
  register u64 x3 __asm__("x3") = d;
  register u64 x4 __asm__("x4") = e;
  register u64 x5 __asm__("x5") = f;
  __asm__ volatile("svc 0"
                   : "+r"(x0)
                   : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
                   : "memory", "cc");
  return (long)x0;
}

static void leave(int code) {
  for (;;) call6(kExit, (u64)code, 0, 0, 0, 0, 0);
}

static void get(void* to, u64 size) {
  u8* at = to;
  while (size) {
    long got = call6(kRead, 0, (u64)at, size, 0, 0, 0);
    if (got <= 0) leave(got == 0 ? 0 : 2);
    at += got;
    size -= (u64)got;
  }
}

static void put(const void* from, u64 size) {
  const u8* at = from;
  while (size) {
    long done = call6(kWrite, 1, (u64)at, size, 0, 0, 0);
    if (done <= 0) leave(3);
    at += done;
    size -= (u64)done;
  }
}

static u64 get_number(void) {
  u64 value;
  get(&value, sizeof value);
  return value;
}

struct Mapping {
  u8* base;
  u64 size;
};

static struct Mapping map(u64 size) {
  struct Mapping m;
  m.size = (size + kPage - 1) / kPage * kPage + kPage;
  long at = call6(kMap, 0, m.size, 3, 0x22, (u64)-1, 0);
  if (at < 0 && at > -4096) leave(4);
  m.base = (u8*)at;
  return m;
}

static void unmap(struct Mapping m) { call6(kUnmap, (u64)m.base, m.size, 0, 0, 0, 0); }

// Memory of `size` bytes whose end is followed by a page that must not be touched.
static u8* guarded(u64 size, struct Mapping* m) {
  *m = map(size + kPage);
  u8* end = m->base + m->size - kPage;
  call6(kProtect, (u64)end, kPage, 0, 0, 0, 0);
  return end - size;
}

struct Args {
  void** buffers;
  u64* dims;
  void* scratch;
  u64* status;
  void* table;  // nothing is called
};

static void one_call(void) {
  u64 image_size = get_number();
  struct Mapping image = map(image_size);
  get(image.base, image_size);
  call6(kProtect, (u64)image.base, image.size, 5, 0, 0, 0);
  for (u64 at = 0; at < image.size; at += 16) {
    __asm__ volatile("dc cvau, %0\n ic ivau, %0" ::"r"(image.base + at) : "memory");
  }
  __asm__ volatile("dsb ish\n isb" ::: "memory");
  u64 offset = get_number();
  u64 begin = get_number();
  u64 end = get_number();
  u64 scratch_size = get_number();
  u64 dims[kMaxDims];
  u64 dim_count = get_number();
  if (dim_count > kMaxDims) leave(5);
  for (u64 k = 0; k < dim_count; ++k) dims[k] = get_number();
  void* buffers[kMaxBuffers];
  u64 sizes[kMaxBuffers];
  struct Mapping mappings[kMaxBuffers];
  u64 count = get_number();
  if (count > kMaxBuffers) leave(6);
  for (u64 k = 0; k < count; ++k) {
    sizes[k] = get_number();
    buffers[k] = guarded(sizes[k], &mappings[k]);
    get(buffers[k], sizes[k]);
  }
  struct Mapping scratch;
  u64 status = 0;
  struct Args args = {buffers, dims, guarded((scratch_size + 63) / 64 * 64, &scratch), &status, 0};
  ((void (*)(struct Args*, u64, u64))(image.base + offset))(&args, begin, end);
  put(&status, sizeof status);
  for (u64 k = 0; k < count; ++k) {
    put(buffers[k], sizes[k]);
    unmap(mappings[k]);
  }
  unmap(scratch);
  unmap(image);
}

void _start(void) {
  for (;;) one_call();
}
