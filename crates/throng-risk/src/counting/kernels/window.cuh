// Structures of all kernels, as in cuda/kernel_tables.rs. Compiled by NVRTC, and with emulation.h for tests.
//
// A launch is a grid of candidates (or groups) by stretches of rows or cells.

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// No code or subject: both are below it.
#define NOBODY 0xffffffffu
// No key: packed keys stay below 2^63.
#define NO_KEY 0xffffffffffffffffull

// Codes of one, two or four bytes.
struct Column {
    u64 address;
    u64 width;
};

// Column of a candidate: number, radix in the packed key, slot in the tile.
struct Term {
    u32 column;
    u32 radix;
    u32 slot;
    u32 unused;
};

// Hash table of a chain; its keys are the class so far and more terms.
struct Stage {
    u64 keys;
    u64 mask;
    u32 first;
    u32 terms;
};

struct Candidate {
    u64 cells;
    u64 counts;    // start
    u64 seen;      // start of (class, subject) pairs: bitmap or table
    u64 seen_mask; // table slots less one; 0: bitmap
    u32 first;     // term
    u32 terms;
    u32 stage; // first
    u32 stages;
    u32 shared;   // start of private counts, in words
    u32 replicas; // binary logarithm
    u32 family;   // equal if all terms but the last are
    u32 most;     // more classes prove that one is below k
};

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
    u64 found;    // classes found in tables
    u64 filled;   // cells that reached k
    u32 verdict;  // before all rows were read
    u32 overflow; // full table
};

// Window in its ring: `rows` rows from `start` on, around the end.
struct Ring {
    u64 start;
    u64 rows;
    u64 capacity;

    // Row number at a place, or NO_KEY.
    __device__ u64 row(u64 place) const {
        if (place >= capacity) return NO_KEY;
        const u64 row = place >= start ? place - start : place + capacity - start;
        return row < rows ? row : NO_KEY;
    }

    // One bit for each of four places with a row.
    __device__ u32 held(u64 place) const {
        u32 held = 0;
        for (u32 i = 0; i < 4; i++) held |= (u32)(row(place + i) != NO_KEY) << i;
        return held;
    }
};

// Codes at four places, from a multiple of four on; columns are padded to sixteen.
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

// Appends mixed-radix digits of four rows to `keys`.
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

// Finds or inserts a key; NO_KEY if there is no room.
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

// NO_KEY if not inserted.
static __device__ __forceinline__ u64 find(const u64* table, u64 mask, u64 key) {
    u64 slot = mixed(key) & mask;
    for (u64 probes = 0; probes <= mask; probes++) {
        if (table[slot] == key) return slot;
        if (table[slot] == NO_KEY) return NO_KEY;
        slot = (slot + 1) & mask;
    }
    return NO_KEY;
}

// Adds a subject to a set of at most k, in slots `stride` apart. True for the k-th.
//
// Slots fill in order and never empty, so equal subjects meet in one slot: the set is exact until full.
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
