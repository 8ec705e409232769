// Summary of the counts of a candidate.

template <bool CROWDS>
static __device__ void summarize_counts(const Candidate* candidates, u64 stretch, u32 k, u32 people, const u32* counts,
                                        Outcome* outcomes) {
    DYNAMIC_SHARED(shared);
    u64* sums = (u64*)shared; // smallest, classes, classes below k, their records
    const Candidate candidate = candidates[blockIdx.x];
    const u64 begin = blockIdx.y * stretch;
    const u64 end = begin + stretch < candidate.cells ? begin + stretch : candidate.cells;
    if (begin >= end) return;
    if (threadIdx.x < 4) sums[threadIdx.x] = threadIdx.x == 0 ? NO_KEY : 0;
    __syncthreads();
    u64 smallest = NO_KEY, classes = 0, below = 0, records = 0;
    for (u64 cell = begin + threadIdx.x; cell < end; cell += blockDim.x) {
        u64 support = 0;
        if (CROWDS) {
            while (support < k && counts[candidate.counts + support * candidate.cells + cell] != NOBODY) support++;
        } else {
            support = counts[candidate.counts + cell];
        }
        if (support == 0) continue;
        classes++;
        if (support < smallest) smallest = support;
        if (support < k) {
            below++;
            records += support;
        }
    }
    if (classes != 0) {
        atomicMin(sums, smallest);
        atomicAdd(sums + 1, classes);
        atomicAdd(sums + 2, below);
        atomicAdd(sums + 3, records);
    }
    __syncthreads();
    if (threadIdx.x != 0 || sums[1] == 0) return;
    Outcome* outcome = outcomes + blockIdx.x;
    atomicMin(&outcome->smallest, sums[0]);
    atomicAdd(&outcome->classes, sums[1]);
    atomicAdd(&outcome->classes_below, sums[2]);
    // Supports are no records here: `expose` counts those.
    if (!people) atomicAdd(&outcome->records_below, sums[3]);
}

KERNEL summarize(const Candidate* candidates, u64 stretch, u32 k, u32 people, const u32* counts,
                                     Outcome* outcomes) {
    summarize_counts<false>(candidates, stretch, k, people, counts, outcomes);
}

// Counts are sets of at most k subjects.
KERNEL summarize_crowds(const Candidate* candidates, u64 stretch, u32 k, u32 people,
                                            const u32* counts, Outcome* outcomes) {
    summarize_counts<true>(candidates, stretch, k, people, counts, outcomes);
}
