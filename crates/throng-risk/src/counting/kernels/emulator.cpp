// Emulated device as a process: commands on standard input, answers on standard output, in little-endian words.
//
//   1 bytes                      allocate         -> address
//   2 address                    free
//   3 address bytes DATA         upload
//   4 address bytes value        fill with a byte
//   5 address bytes              download         -> DATA
//   6 name grid.x grid.y threads shared arguments DATA   launch (name: its length, then its bytes)
//   7 seed                       the order of blocks and threads from here on
//   8                            are all commands done -> 0

#include "emulation.h"

#include "window.cuh"

#include "classes.cu"
#include "pairs.cu"
#include "ring.cu"
#include "slices.cu"
#include "small.cu"
#include "summary.cu"

#include <map>
#include <memory>
#include <string>

static uint64_t word() {
    uint64_t value;
    if (fread(&value, sizeof value, 1, stdin) != 1) exit(0);
    return value;
}

static void bytes_in(void* to, size_t count) {
    if (count != 0 && fread(to, 1, count, stdin) != count) emulation::fail("a command that ends early");
}

static void out(const void* from, size_t count) {
    if (fwrite(from, 1, count, stdout) != count || fflush(stdout) != 0) emulation::fail("nobody reads the answers");
}

#define LISTED(name) {#name, emulation::callable(name)}

int main() {
    const std::map<std::string, std::function<void(const uint64_t*, size_t)>> kernels = {
        LISTED(append),        LISTED(widen),        LISTED(small_records), LISTED(small_people),
        LISTED(dense_records), LISTED(dense_people), LISTED(sparse_records), LISTED(sparse_people),
        LISTED(dense_crowds),  LISTED(expose_dense), LISTED(expose_sparse),  LISTED(summarize),
        LISTED(summarize_crowds), LISTED(infer),      LISTED(recode),
        LISTED(slice),         LISTED(count_slices),
    };
    std::map<uint64_t, std::unique_ptr<emulation::Guarded>> memory;
    for (;;) {
        switch (word()) {
            case 1: {
                auto block = std::make_unique<emulation::Guarded>(word());
                const auto address = reinterpret_cast<uint64_t>(block->start());
                memory[address] = std::move(block);
                out(&address, sizeof address);
                break;
            }
            case 2:
                if (memory.erase(word()) != 1) emulation::fail("what was not allocated is freed");
                break;
            case 3: {
                char* to = reinterpret_cast<char*>(word());
                bytes_in(to, word());
                break;
            }
            case 4: {
                char* to = reinterpret_cast<char*>(word());
                const size_t count = word();
                memset(to, static_cast<int>(word()), count);
                break;
            }
            case 5: {
                const char* from = reinterpret_cast<const char*>(word());
                out(from, word());
                break;
            }
            case 6: {
                std::string name(word(), ' ');
                bytes_in(name.data(), name.size());
                const unsigned columns = word(), rows = word(), threads = word();
                const size_t shared = word();
                std::vector<uint64_t> arguments(word());
                bytes_in(arguments.data(), arguments.size() * sizeof(uint64_t));
                const auto kernel = kernels.find(name);
                if (kernel == kernels.end()) emulation::fail("an unknown kernel");
                emulation::launch([&] { kernel->second(arguments.data(), arguments.size()); }, columns, rows, threads,
                                  shared);
                break;
            }
            case 7:
                emulation::random_state = word() | 1;
                break;
            case 8: {
                const uint64_t done = 0;
                out(&done, sizeof done);
                break;
            }
            default:
                emulation::fail("an unknown command");
        }
    }
}
