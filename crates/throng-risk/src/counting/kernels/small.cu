// Candidates of few cells: private counts in shared memory, several candidates per block over one tile.
//
// Shared memory: the tile (two bytes per code), its subjects if counted, 34 state words, private counts. 2^replicas
// copies avoid conflicts of lanes.

#define STATE 34u

// Rows per thread and step.
#define STEP 4u

template <bool PEOPLE>
static __device__ void count_small(const Ring ring, const Column* columns, const u32* subjects, const Group* groups,
                                   const Candidate* candidates, const Term* terms, const u32* slots, u64 extent,
                                   u64 stretch, u32 tile, u32 k, bool judging, u32* counts, Outcome* outcomes) {
    DYNAMIC_SHARED(shared);
    const Group group = groups[blockIdx.x];
    u16* codes = (u16*)shared;
    u32* people = shared + group.slots * tile / 2;
    u32* state = people + (PEOPLE ? tile : 0);
    u32* cells = state + STATE;
    u32* filled = state + 2;
    const Candidate* own = candidates + group.first;

    if (threadIdx.x < STATE) state[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x < group.candidates) {
        const bool open = !judging || ((volatile Outcome*)outcomes)[group.first + threadIdx.x].verdict == UNDECIDED;
        if (open) atomicOr(state, 1u << threadIdx.x);
    }
    __syncthreads();
    const u32 open = state[0];
    if (open == 0) return;

    for (u32 c = 0; c < group.candidates; c++) {
        const u64 words = PEOPLE ? own[c].cells * k : own[c].cells << own[c].replicas;
        for (u64 w = threadIdx.x; w < words; w += blockDim.x) cells[own[c].shared + w] = PEOPLE ? NOBODY : 0;
    }

    const u64 begin = blockIdx.y * stretch;
    const u64 end = begin + stretch < extent ? begin + stretch : extent;
    for (u64 from = begin; from < end; from += tile) {
        __syncthreads();
        for (u32 s = 0; s < group.slots; s++) {
            const Column column = columns[slots[group.slot + s]];
            for (u32 r = threadIdx.x * STEP; r < tile && from + r < end; r += blockDim.x * STEP) {
                u32 four[4];
                codes_at(column, from + r, four);
                u32* to = (u32*)(codes + s * tile + r);
                to[0] = four[0] | four[1] << 16;
                to[1] = four[2] | four[3] << 16;
            }
        }
        if (PEOPLE) {
            for (u32 r = threadIdx.x; r < tile && from + r < end; r += blockDim.x) {
                people[r] = ring.row(from + r) == NO_KEY ? NOBODY : subjects[from + r];
            }
        }
        __syncthreads();
        for (u32 r = threadIdx.x * STEP; r < tile && from + r < end; r += blockDim.x * STEP) {
            const u32 held = ring.held(from + r);
            if (held == 0) continue;
            u32 family = NOBODY;
            u32 parents[4] = {0, 0, 0, 0};
            for (u32 c = 0; c < group.candidates; c++) {
                if (!(open >> c & 1)) continue;
                const Candidate candidate = own[c];
                const u32 last = candidate.first + candidate.terms - 1;
                if (candidate.family != family) {
                    family = candidate.family;
                    for (u32 i = 0; i < 4; i++) parents[i] = 0;
                    for (u32 t = candidate.first; t < last; t++) {
                        const u32* two = (const u32*)(codes + terms[t].slot * tile + r);
                        const u32 low = two[0], high = two[1], radix = terms[t].radix;
                        parents[0] = parents[0] * radix + (low & 0xffff);
                        parents[1] = parents[1] * radix + (low >> 16);
                        parents[2] = parents[2] * radix + (high & 0xffff);
                        parents[3] = parents[3] * radix + (high >> 16);
                    }
                }
                const u32* two = (const u32*)(codes + terms[last].slot * tile + r);
                const u32 low = two[0], high = two[1], radix = terms[last].radix;
                const u32 keys[4] = {parents[0] * radix + (low & 0xffff), parents[1] * radix + (low >> 16),
                                     parents[2] * radix + (high & 0xffff), parents[3] * radix + (high >> 16)};
                u32* private_counts = cells + candidate.shared;
                const u32 replica = threadIdx.x & ((1u << candidate.replicas) - 1);
                for (u32 i = 0; i < 4; i++) {
                    if (!(held >> i & 1)) continue;
                    if (PEOPLE) {
                        join(private_counts + keys[i], candidate.cells, k, people[r + i]);
                    } else {
                        atomicAdd(private_counts + (keys[i] << candidate.replicas) + replica, 1u);
                    }
                }
            }
        }
    }
    __syncthreads();

    for (u32 c = 0; c < group.candidates; c++) {
        if (!(open >> c & 1)) continue;
        const Candidate candidate = own[c];
        u32 crossed = 0;
        for (u64 cell = threadIdx.x; cell < candidate.cells; cell += blockDim.x) {
            if (PEOPLE) {
                for (u32 i = 0; i < k; i++) {
                    const u32 subject = cells[candidate.shared + i * candidate.cells + cell];
                    if (subject == NOBODY) break;
                    crossed += join(counts + candidate.counts + cell, candidate.cells, k, subject);
                }
            } else {
                u32 sum = 0;
                const u32* replicas = cells + candidate.shared + (cell << candidate.replicas);
                for (u32 i = 0; i < 1u << candidate.replicas; i++) sum += replicas[i];
                if (sum == 0) continue;
                const u32 before = atomicAdd(counts + candidate.counts + cell, sum);
                crossed += before < k && sum >= k - before;
            }
        }
        if (judging && crossed != 0) atomicAdd(filled + c, crossed);
    }
    __syncthreads();
    if (threadIdx.x < group.candidates && filled[threadIdx.x] != 0) {
        Outcome* outcome = outcomes + group.first + threadIdx.x;
        const u64 sum = filled[threadIdx.x] + atomicAdd(&outcome->filled, (u64)filled[threadIdx.x]);
        if (sum == own[threadIdx.x].cells) outcome->verdict = SAFE;
    }
}

KERNEL small_records(u64 start, u64 rows, u64 capacity, const Column* columns, const u32* subjects,
                                         const Group* groups, const Candidate* candidates, const Term* terms,
                                         const u32* slots, u64 extent, u64 stretch, u32 tile, u32 k, u32 judging,
                                         u32* counts, Outcome* outcomes) {
    count_small<false>(Ring{start, rows, capacity}, columns, subjects, groups, candidates, terms, slots, extent, stretch,
                       tile, k, judging != 0, counts, outcomes);
}

// Judges only.
KERNEL small_people(u64 start, u64 rows, u64 capacity, const Column* columns, const u32* subjects,
                                        const Group* groups, const Candidate* candidates, const Term* terms,
                                        const u32* slots, u64 extent, u64 stretch, u32 tile, u32 k, u32 judging,
                                        u32* counts, Outcome* outcomes) {
    count_small<true>(Ring{start, rows, capacity}, columns, subjects, groups, candidates, terms, slots, extent, stretch,
                      tile, k, judging != 0, counts, outcomes);
}
