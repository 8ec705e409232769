// Kernel dialect for CUDA; emulation.h is the one for C++.

// Dynamic shared memory, in words.
extern __shared__ __align__(16) unsigned int dynamic_shared[];
#define DYNAMIC_SHARED(name) unsigned int* const name = dynamic_shared

// Four blocks of 256 threads per multiprocessor: 64 registers per thread.
#define KERNEL extern "C" __global__ void __launch_bounds__(256, 4)
