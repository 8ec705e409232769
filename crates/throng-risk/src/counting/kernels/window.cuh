// What every kernel shares: the window in device memory, the candidates of a launch, their outcomes.
//
// Compiled by NVRTC for the device at hand, and by a C++ compiler with emulation.h for the tests. Every structure has its
// twin in cuda/tables.rs. A launch is a grid of (candidates or groups of them) by (stretches of rows or cells).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// No code, no subject: both stay below it.
#define NOBODY 0xffffffffu
// No key: packed keys stay below 2^63.
#define NO_KEY 0xffffffffffffffffull

// A column's codes, one, two or four bytes each, at the places of the ring.
struct Column {
    u64 address;
    u64 width;
};

// One column of a candidate: its number, its radix in the packed key, and where its codes lie in the tile of a group.
struct Term {
    u32 column;
    u32 radix;
    u32 slot;
    u32 unused;
};

// A hash table on the way from a row to its class: the class so far and some more terms are its key.
struct Stage {
    u64 keys;
    u64 mask;
    u32 first;
    u32 terms;
};

struct Candidate {
    u64 cells;     // cells of its counts
    u64 counts;    // where they begin
    u64 seen;      // where its (class, subject) pairs begin: words of a bitmap, or slots of a table
    u64 seen_mask; // slots of that table less one; 0 says bitmap
    u32 first;     // term
    u32 terms;
    u32 stage; // first
    u32 stages;
    u32 shared;   // where its private counts begin in shared memory, in words
    u32 replicas; // of them, as a power of two
    u32 family;   // equal where all terms but the last are
    u32 most;     // classes; one more is proof that some class is below k
};

// Candidates that share the columns of a tile.
struct Group {
    u32 first;
    u32 candidates; // at most 32
    u32 slot;       // first
    u32 slots;
};

#define UNDECIDED 0u
#define SAFE 1u
#define QID 2u

struct Outcome {
    u64 smallest;
    u64 classes;
    u64 classes_below;
    u64 records_below;
    u64 subjects_below;
    u64 found;    // classes met so far, in a table
    u64 filled;   // cells that have reached k
    u32 verdict;  // certain before all rows were read
    u32 overflow; // a table had no room: the answer is void
};

// Where the window lies in its ring: `rows` of them from `start` on, around the end of `capacity`.
struct Ring {
    u64 start;
    u64 rows;
    u64 capacity;

    // The number of the row at a place, NO_KEY where there is none.
    __device__ u64 row(u64 place) const {
        if (place >= capacity) return NO_KEY;
        const u64 row = place >= start ? place - start : place + capacity - start;
        return row < rows ? row : NO_KEY;
    }

    // Which of the four places from here on hold a row, a bit each.
    __device__ u32 held(u64 place) const {
        u32 held = 0;
        for (u32 i = 0; i < 4; i++) held |= (u32)(row(place + i) != NO_KEY) << i;
        return held;
    }
};

// The codes at four places, from a multiple of four on. Columns are padded to sixteen places.
static __device__ __forceinline__ void codes_at(const Column column, u64 place, u32 codes[4]) {
    if (column.width == 1) {
        const u32 word = __ldg((const u32*)(column.address + place));
        for (u32 i = 0; i < 4; i++) codes[i] = word >> (8 * i) & 0xff;
    } else if (column.width == 2) {
        const uint2 words = __ldg((const uint2*)(column.address + 2 * place));
        codes[0] = words.x & 0xffff;
        codes[1] = words.x >> 16;
        codes[2] = words.y & 0xffff;
        codes[3] = words.y >> 16;
    } else {
        const uint4 words = __ldg((const uint4*)(column.address + 4 * place));
        codes[0] = words.x;
        codes[1] = words.y;
        codes[2] = words.z;
        codes[3] = words.w;
    }
}

// Mixed-radix keys of four rows, begun with what stands in `keys`.
static __device__ __forceinline__ void pack(const Column* columns, const Term* terms, u32 first, u32 count, u64 place,
                                            u64 keys[4]) {
    for (u32 t = first; t < first + count; t++) {
        const Term term = terms[t];
        u32 codes[4];
        codes_at(columns[term.column], place, codes);
        for (u32 i = 0; i < 4; i++) keys[i] = keys[i] * term.radix + codes[i];
    }
}

static __device__ __forceinline__ u64 mixed(u64 key) {
    key = (key ^ key >> 31) * 0x9e3779b97f4a7c15ull;
    key = (key ^ key >> 29) * 0xd6e8feb86659fd93ull;
    return key ^ key >> 32;
}

// The slot of a key in a table of `mask` + 1 slots, taken where it is new. NO_KEY where there is no room.
static __device__ __forceinline__ u64 find_or_insert(u64* table, u64 mask, u64 key, bool& fresh) {
    u64 slot = mixed(key) & mask;
    for (u64 probes = 0; probes <= mask; probes++) {
        u64 there = ((volatile u64*)table)[slot];
        if (there == NO_KEY) there = atomicCAS(table + slot, NO_KEY, key);
        if (there == NO_KEY) fresh = true;
        if (there == NO_KEY || there == key) return slot;
        slot = (slot + 1) & mask;
    }
    return NO_KEY;
}

// The slot of a key that was inserted before, NO_KEY where it was not.
static __device__ __forceinline__ u64 find(const u64* table, u64 mask, u64 key) {
    u64 slot = mixed(key) & mask;
    for (u64 probes = 0; probes <= mask; probes++) {
        if (table[slot] == key) return slot;
        if (table[slot] == NO_KEY) return NO_KEY;
        slot = (slot + 1) & mask;
    }
    return NO_KEY;
}

// Adds a subject to a set that holds at most k of them, in slots `stride` apart. True where it is the k-th.
//
// Slots fill in order and are never emptied, so two threads with one subject meet in the same slot: no subject is held
// twice, and the set is exact until it is full.
static __device__ __forceinline__ bool join(u32* slots, u64 stride, u32 k, u32 subject) {
    for (u32 i = 0; i < k; i++) {
        u32* slot = slots + i * stride;
        u32 there = *(volatile u32*)slot;
        if (there == NOBODY) {
            there = atomicCAS(slot, NOBODY, subject);
            if (there == NOBODY) return i + 1 == k;
        }
        if (there == subject) return false;
    }
    return false;
}
