// Candidates of many cells, one per block: counts in global memory.
//
// SPARSE: a class is a slot of the last of a chain of tables, else the packed key. PEOPLE: a class counts a subject
// once, by a bitmap or table of (class, subject) pairs.

// INSERT adds new classes; `fresh` counts those of the last table. Rows without room or slot leave `held`.
template <bool SPARSE, bool INSERT>
static __device__ __forceinline__ void classes_of(const Column* columns, const Term* terms, const Stage* stages,
                                                  const Candidate& candidate, u64* tables, u64 place, u32& held,
                                                  u64 classes[4], u32& fresh) {
    for (u32 i = 0; i < 4; i++) classes[i] = 0;
    if constexpr (!SPARSE) {
        pack(columns, terms, candidate.first, candidate.terms, place, classes);
    } else {
        for (u32 s = candidate.stage; s < candidate.stage + candidate.stages; s++) {
            const Stage stage = stages[s];
            const bool last = s + 1 == candidate.stage + candidate.stages;
            // Slots so far are the first digits of the next keys.
            pack(columns, terms, stage.first, stage.terms, place, classes);
            for (u32 i = 0; i < 4; i++) {
                if (!(held >> i & 1)) continue;
                bool taken = false;
                classes[i] = INSERT ? find_or_insert(tables + stage.keys, stage.mask, classes[i], taken)
                                    : find(tables + stage.keys, stage.mask, classes[i]);
                fresh += last && taken;
                if (classes[i] == NO_KEY) held &= ~(1u << i);
            }
        }
    }
}

template <bool SPARSE, bool PEOPLE>
static __device__ void count_classes(const Ring ring, const Column* columns, const u32* subjects,
                                     const Candidate* candidates, const Term* terms, const Stage* stages, u64 extent,
                                     u64 stretch, u64 people, u32 k, bool judging, u32* counts, u64* tables, u32* seen,
                                     Outcome* outcomes) {
    DYNAMIC_SHARED(shared);
    const Candidate candidate = candidates[blockIdx.x];
    Outcome* outcome = outcomes + blockIdx.x;
    if (threadIdx.x < 4) shared[threadIdx.x] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && judging) shared[0] = ((volatile Outcome*)outcome)->verdict;
    __syncthreads();
    if (shared[0] != UNDECIDED) return;

    u32 crossed = 0, fresh = 0;
    const u64 begin = blockIdx.y * stretch;
    const u64 end = begin + stretch < extent ? begin + stretch : extent;
    for (u64 place = begin + threadIdx.x * 4; place < end; place += blockDim.x * 4) {
        const u32 rows = ring.held(place);
        if (rows == 0) continue;
        u32 held = rows;
        u64 classes[4];
        classes_of<SPARSE, true>(columns, terms, stages, candidate, tables, place, held, classes, fresh);
        if (held != rows) shared[3] = 1;
        for (u32 i = 0; i < 4; i++) {
            if (!(held >> i & 1)) continue;
            if (PEOPLE) {
                const u64 pair = classes[i] * people + subjects[place + i];
                if (candidate.seen_mask == 0) {
                    const u32 bit = 1u << (pair & 31);
                    if (atomicOr(seen + candidate.seen + (pair >> 5), bit) & bit) continue;
                } else {
                    bool first = false;
                    if (find_or_insert(tables + candidate.seen, candidate.seen_mask, pair, first) == NO_KEY) shared[3] = 1;
                    if (!first) continue;
                }
            }
            crossed += atomicAdd(counts + candidate.counts + classes[i], 1u) + 1 == k;
        }
    }
    if (crossed != 0) atomicAdd(shared + 1, crossed);
    if (fresh != 0) atomicAdd(shared + 2, fresh);
    __syncthreads();
    if (threadIdx.x != 0) return;
    if (shared[3] != 0) outcome->overflow = 1;
    if (!judging) return;
    if (SPARSE) {
        if (atomicAdd(&outcome->found, (u64)shared[2]) + shared[2] > candidate.most) outcome->verdict = QID;
    } else {
        if (atomicAdd(&outcome->filled, (u64)shared[1]) + shared[1] == candidate.cells) outcome->verdict = SAFE;
    }
}

#define CLASSES(NAME, SPARSE, PEOPLE)                                                                                     \
    KERNEL NAME(u64 start, u64 rows, u64 capacity, const Column* columns, const u32* subjects,        \
                                    const Candidate* candidates, const Term* terms, const Stage* stages, u64 extent,      \
                                    u64 stretch, u64 people, u32 k, u32 judging, u32* counts, u64* tables, u32* seen,     \
                                    Outcome* outcomes) {                                                                  \
        count_classes<SPARSE, PEOPLE>(Ring{start, rows, capacity}, columns, subjects, candidates, terms, stages, extent,  \
                                      stretch, people, k, judging != 0, counts, tables, seen, outcomes);                  \
    }

CLASSES(dense_records, false, false)
CLASSES(dense_people, false, true)
CLASSES(sparse_records, true, false)
CLASSES(sparse_people, true, true)

// Judges subjects by sets of at most k per cell.
KERNEL dense_crowds(u64 start, u64 rows, u64 capacity, const Column* columns, const u32* subjects,
                                        const Candidate* candidates, const Term* terms, u64 extent, u64 stretch, u32 k,
                                        u32* counts, Outcome* outcomes) {
    DYNAMIC_SHARED(shared);
    const Ring ring{start, rows, capacity};
    const Candidate candidate = candidates[blockIdx.x];
    Outcome* outcome = outcomes + blockIdx.x;
    if (threadIdx.x == 0) {
        shared[0] = ((volatile Outcome*)outcome)->verdict;
        shared[1] = 0;
    }
    __syncthreads();
    if (shared[0] != UNDECIDED) return;
    u32 crossed = 0;
    const u64 begin = blockIdx.y * stretch;
    const u64 end = begin + stretch < extent ? begin + stretch : extent;
    for (u64 place = begin + threadIdx.x * 4; place < end; place += blockDim.x * 4) {
        const u32 held = ring.held(place);
        if (held == 0) continue;
        u64 keys[4] = {0, 0, 0, 0};
        pack(columns, terms, candidate.first, candidate.terms, place, keys);
        for (u32 i = 0; i < 4; i++) {
            if (!(held >> i & 1)) continue;
            crossed += join(counts + candidate.counts + keys[i], candidate.cells, k, subjects[place + i]);
        }
    }
    if (crossed != 0) atomicAdd(shared + 1, crossed);
    __syncthreads();
    if (threadIdx.x != 0 || shared[1] == 0) return;
    if (atomicAdd(&outcome->filled, (u64)shared[1]) + shared[1] == candidate.cells) outcome->verdict = SAFE;
}

// Counts records and subjects of classes below k; `marks` optionally gets a bit per record. `exposed` has `words` words
// per candidate.
template <bool SPARSE>
static __device__ void expose_rows(const Ring ring, const Column* columns, const u32* subjects,
                                   const Candidate* candidates, const Term* terms, const Stage* stages, u64 extent,
                                   u64 stretch, u64 words, u32 k, const u32* counts, u64* tables, u32* exposed, u32* marks,
                                   u64 first_row, Outcome* outcomes) {
    DYNAMIC_SHARED(shared);
    const Candidate candidate = candidates[blockIdx.x];
    Outcome* outcome = outcomes + blockIdx.x;
    if (outcome->classes_below == 0) return;
    if (threadIdx.x < 2) shared[threadIdx.x] = 0;
    __syncthreads();
    u32 records = 0, people = 0, unused = 0;
    const u64 begin = blockIdx.y * stretch;
    const u64 end = begin + stretch < extent ? begin + stretch : extent;
    for (u64 place = begin + threadIdx.x * 4; place < end; place += blockDim.x * 4) {
        u32 held = ring.held(place);
        if (held == 0) continue;
        u64 classes[4];
        classes_of<SPARSE, false>(columns, terms, stages, candidate, tables, place, held, classes, unused);
        for (u32 i = 0; i < 4; i++) {
            if (!(held >> i & 1)) continue;
            if (counts[candidate.counts + classes[i]] >= k) continue;
            records++;
            if (words != 0) {
                const u32 subject = subjects[place + i];
                const u32 bit = 1u << (subject & 31);
                people += (atomicOr(exposed + blockIdx.x * words + (subject >> 5), bit) & bit) == 0;
            }
            if (marks != 0) {
                const u64 row = first_row + ring.row(place + i);
                atomicOr(marks + (row >> 5), 1u << (row & 31));
            }
        }
    }
    if (records != 0) atomicAdd(shared, records);
    if (people != 0) atomicAdd(shared + 1, people);
    __syncthreads();
    if (threadIdx.x != 0 || shared[0] == 0) return;
    atomicAdd(&outcome->records_below, (u64)shared[0]);
    atomicAdd(&outcome->subjects_below, (u64)shared[1]);
}

#define EXPOSE(NAME, SPARSE)                                                                                              \
    KERNEL NAME(u64 start, u64 rows, u64 capacity, const Column* columns, const u32* subjects,        \
                                    const Candidate* candidates, const Term* terms, const Stage* stages, u64 extent,      \
                                    u64 stretch, u64 words, u32 k, const u32* counts, u64* tables, u32* exposed,          \
                                    u32* marks, u64 first_row, Outcome* outcomes) {                                       \
        expose_rows<SPARSE>(Ring{start, rows, capacity}, columns, subjects, candidates, terms, stages, extent, stretch,   \
                            words, k, counts, tables, exposed, marks, first_row, outcomes);                               \
    }

EXPOSE(expose_dense, false)
EXPOSE(expose_sparse, true)
