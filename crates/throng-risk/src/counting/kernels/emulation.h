// Kernel dialect for C++: an emulated device for tests.
//
// Blocks run in random order; their threads are fibres that switch at barriers, in another random order each time.
// Shared memory begins poisoned and ends at a guard page. A barrier that some threads miss ends the process.

#pragma once

#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>
#include <utility>
#include <vector>

#define __device__
#define KERNEL extern "C" void
#define __forceinline__ inline

struct uint2 {
    unsigned x, y;
};
struct uint4 {
    unsigned x, y, z, w;
};

namespace emulation {

struct Index {
    unsigned x, y, z;
};

[[noreturn]] inline void fail(const char* why) {
    fprintf(stderr, "emulation: %s\n", why);
    _exit(70);
}

// Memory followed by a guard page.
class Guarded {
  public:
    explicit Guarded(size_t bytes) {
        const size_t page = sysconf(_SC_PAGESIZE);
        used_ = (bytes + 15) / 16 * 16;
        mapped_ = (used_ + page - 1) / page * page + page;
        base_ = static_cast<char*>(mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
        if (base_ == MAP_FAILED) fail("no memory");
        if (mprotect(base_ + mapped_ - page, page, PROT_NONE) != 0) fail("no guard page");
        start_ = base_ + mapped_ - page - used_;
        poison();
    }
    Guarded(const Guarded&) = delete;
    Guarded& operator=(const Guarded&) = delete;
    ~Guarded() { munmap(base_, mapped_); }
    char* start() const { return start_; }
    void poison() { memset(start_, 0xa5, used_); }

  private:
    char* base_;
    char* start_;
    size_t used_, mapped_;
};

inline uint64_t random_state = 1;

inline unsigned random_below(unsigned n) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return static_cast<unsigned>(random_state % n);
}

inline void shuffle(std::vector<unsigned>& order) {
    for (size_t i = order.size(); i > 1; i--) std::swap(order[i - 1], order[random_below(static_cast<unsigned>(i))]);
}

struct Fibre {
    ucontext_t context;
    jmp_buf state;
    char* stack = nullptr;
    bool started = false, finished = false;
};

struct Device {
    static constexpr size_t STACK = 64 << 10;
    std::vector<Fibre> fibres;
    jmp_buf scheduler;
    ucontext_t home;
    unsigned current = 0;
    Index thread{}, block{}, block_size{}, grid{};
    char* shared = nullptr;
    const std::function<void()>* kernel = nullptr;

    void give_way() {
        if (_setjmp(fibres[current].state) == 0) _longjmp(scheduler, 1);
    }

    void run_block(unsigned threads) {
        if (fibres.size() < threads) fibres.resize(threads);
        std::vector<unsigned> order(threads);
        for (unsigned t = 0; t < threads; t++) {
            order[t] = t;
            fibres[t].started = fibres[t].finished = false;
            if (fibres[t].stack == nullptr) fibres[t].stack = static_cast<char*>(malloc(STACK));
        }
        unsigned finished = 0;
        while (finished < threads) {
            shuffle(order);
            for (const unsigned t : order) {
                resume(t);
                finished += fibres[t].finished;
            }
            if (finished != 0 && finished != threads) fail("a barrier that some threads do not reach");
        }
    }

    void resume(unsigned t);
};

inline Device device;

inline void enter() {
    (*device.kernel)();
    device.fibres[device.current].finished = true;
    _longjmp(device.scheduler, 1);
}

inline void Device::resume(unsigned t) {
    Fibre& fibre = fibres[t];
    current = t;
    thread = {t, 0, 0};
    if (_setjmp(scheduler) != 0) return;
    if (fibre.started) _longjmp(fibre.state, 1);
    fibre.started = true;
    getcontext(&fibre.context);
    fibre.context.uc_stack.ss_sp = fibre.stack;
    fibre.context.uc_stack.ss_size = STACK;
    fibre.context.uc_link = nullptr;
    makecontext(&fibre.context, enter, 0);
    swapcontext(&home, &fibre.context);
}

inline void launch(const std::function<void()>& kernel, unsigned columns, unsigned rows, unsigned threads, size_t shared) {
    Guarded memory(shared);
    std::vector<unsigned> order(static_cast<size_t>(columns) * rows);
    for (size_t b = 0; b < order.size(); b++) order[b] = static_cast<unsigned>(b);
    shuffle(order);
    device.kernel = &kernel;
    device.shared = memory.start();
    device.block_size = {threads, 1, 1};
    device.grid = {columns, rows, 1};
    for (const unsigned b : order) {
        device.block = {b % columns, b / columns, 0};
        memory.poison();
        device.run_block(threads);
    }
}

template <class... A, size_t... I>
void call(void (*kernel)(A...), const uint64_t* arguments, std::index_sequence<I...>) {
    const auto as = [&]<class T>(size_t i) {
        T value;
        static_assert(sizeof(T) <= 8, "an argument is at most eight bytes");
        memcpy(&value, arguments + i, sizeof(T));
        return value;
    };
    kernel(as.template operator()<A>(I)...);
}

template <class... A> std::function<void(const uint64_t*, size_t)> callable(void (*kernel)(A...)) {
    return [kernel](const uint64_t* arguments, size_t count) {
        if (count != sizeof...(A)) fail("a kernel with another number of arguments");
        call(kernel, arguments, std::index_sequence_for<A...>{});
    };
}

} // namespace emulation

#define threadIdx (emulation::device.thread)
#define blockIdx (emulation::device.block)
#define blockDim (emulation::device.block_size)
#define gridDim (emulation::device.grid)
#define DYNAMIC_SHARED(name) unsigned* const name = reinterpret_cast<unsigned*>(emulation::device.shared)

// Not inlined: no register is kept across a barrier.
__attribute__((noinline)) inline void __syncthreads() {
#ifdef EMULATION_WITHOUT_BARRIERS
    return; // For the test of missing barriers.
#endif
    const emulation::Index own = emulation::device.thread;
    emulation::device.give_way();
    emulation::device.thread = own;
}

template <class T> T __ldg(const T* address) {
    T value;
    memcpy(&value, address, sizeof value);
    return value;
}

inline unsigned __popc(unsigned word) {
    return static_cast<unsigned>(__builtin_popcount(word));
}

template <class T> T atomicAdd(T* address, T value) {
    const T old = *address;
    *address = old + value;
    return old;
}
template <class T> T atomicOr(T* address, T value) {
    const T old = *address;
    *address = old | value;
    return old;
}
template <class T> T atomicMin(T* address, T value) {
    const T old = *address;
    if (value < old) *address = value;
    return old;
}
template <class T> T atomicCAS(T* address, T expected, T value) {
    const T old = *address;
    if (old == expected) *address = value;
    return old;
}
