// Fault that gpu/device/host_code_test.py must find: a template calls on the host what runs on the
// device alone.
namespace attest::gpu::cuda {

template <class T>
struct Doubled {
  T value;
  __device__ Doubled twice() const { return {2 * value}; }
};

template <class T>
int called_on_the_host(const Doubled<T>& number) {
  return number.twice().value;
}

int call_of_a_template(int value) { return called_on_the_host(Doubled<int>{value}); }

}  // namespace attest::gpu::cuda
