// The dialect of the kernels on a CUDA device; emulation.h is its twin for a C++ compiler.

// The shared memory that a launch asks for, in words.
extern __shared__ __align__(16) unsigned int dynamic_shared[];
#define DYNAMIC_SHARED(name) unsigned int* const name = dynamic_shared

// Blocks have at most 256 threads, of which four blocks share a multiprocessor: at most 64 registers a thread.
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)
