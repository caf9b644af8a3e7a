// load_gelu FILE: loads a saved gelu, calls it on 1,024 elements, and prints the steady clock's
// nanoseconds when the result is there. Links the run-time alone.
#include <tenon/runtime.h>

#include <chrono>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  auto gelu = tenon::load(argv[1]);
  const std::vector<float> ones(1024, 1.0f);
  const tenon::Array y = gelu(tenon::Array::copy_of(tenon::f32, {1024}, ones));
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  const float value = y.as<float>()[1023];
  if (value < 0.841344f || value > 0.841346f) return 1;
  std::printf("%lld\n", static_cast<long long>(
                            std::chrono::duration_cast<std::chrono::nanoseconds>(now).count()));
  return 0;
}
