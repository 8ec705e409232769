// Joint counts without shared counters: a row bitmap per value (slice), and common bits per value pair.

// One slice per value, from `slice` on.
struct Sliced {
    u32 column;
    u32 slice;
    u32 values;
    u32 unused;
};

// Bit b of word w of slice s: row w · 32 + b has value s. Grid: columns by stretches of words.
KERNEL slice(u64 start, u64 rows, u64 capacity, const Column* columns, const Sliced* sliced, u64 words, u32* slices) {
    const Ring ring{start, rows, capacity};
    const Sliced own = sliced[blockIdx.x];
    const Column column = columns[own.column];
    for (u64 word = blockIdx.y * blockDim.x + threadIdx.x; word < words; word += gridDim.y * blockDim.x) {
        u32 held = 0;
        u32 packed[8]; // four codes per word
        for (u32 i = 0; i < 8; i++) {
            const u64 place = word * 32 + i * 4;
            packed[i] = 0;
            const u32 four = ring.held(place);
            if (four == 0) continue;
            held |= four << (4 * i);
            u32 codes[4];
            codes_at(column, place, codes);
            for (u32 c = 0; c < 4; c++) packed[i] |= (codes[c] & 0xff) << (8 * c);
        }
        for (u32 value = 0; value < own.values; value++) {
            u32 bits = 0;
            for (u32 i = 0; i < 8; i++) {
                for (u32 c = 0; c < 4; c++) bits |= (u32)((packed[i] >> (8 * c) & 0xff) == value) << (4 * i + c);
            }
            slices[(own.slice + value) * words + word] = bits & held;
        }
    }
}

// Value pair: slots in the tile, and position of the count.
struct Cell {
    u32 first;
    u32 second;
    u64 count;
};

// Cells of one block, at most one per thread, and their slices.
struct Meeting {
    u32 cell; // first
    u32 cells;
    u32 slice; // first
    u32 slices;
};

// One cell per thread, over tiles of slices, one bank per slice. Grid: groups by stretches of words.
KERNEL count_slices(const Meeting* meetings, const Cell* cells, const u32* numbers, const u32* slices, u64 words, u64 stretch,
                    u32 tile, u32* counts) {
    DYNAMIC_SHARED(shared);
    const Meeting own = meetings[blockIdx.x];
    const bool counting = threadIdx.x < own.cells;
    const Cell cell = cells[own.cell + (counting ? threadIdx.x : 0)];
    const u64 begin = blockIdx.y * stretch;
    const u64 end = begin + stretch < words ? begin + stretch : words;
    // Odd: neighbouring words of a slice lie in different banks.
    const u32 row = own.slices | 1;
    u32 count = 0;
    for (u64 from = begin; from < end; from += tile) {
        const u32 length = end - from < tile ? (u32)(end - from) : tile;
        __syncthreads();
        for (u32 slot = 0; slot < own.slices; slot++) {
            const u32* slice = slices + numbers[own.slice + slot] * words + from;
            for (u32 word = threadIdx.x; word < length; word += blockDim.x) shared[word * row + slot] = slice[word];
        }
        __syncthreads();
        if (!counting) continue;
        for (u32 word = 0; word < length; word++) {
            const u32* held = shared + word * row;
            count += __popc(held[cell.first] & held[cell.second]);
        }
    }
    if (count != 0) atomicAdd(counts + cell.count, count);
}
