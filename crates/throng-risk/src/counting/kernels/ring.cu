// Resident window: new rows arrive as one block, column after column.

// Start in the block, and the ring column.
struct Arrival {
    u64 from;
    u64 to;
    u64 width;
};

// Puts rows at places from `tail` on, around the end.
KERNEL append(const u8* block, const Arrival* arrivals, u64 rows, u64 tail, u64 capacity) {
    const Arrival arrival = arrivals[blockIdx.x];
    const u8* from = block + arrival.from;
    u8* to = (u8*)arrival.to;
    for (u64 row = blockIdx.y * blockDim.x + threadIdx.x; row < rows; row += gridDim.y * blockDim.x) {
        u64 place = tail + row;
        if (place >= capacity) place -= capacity;
        if (arrival.width == 1) {
            to[place] = from[row];
        } else if (arrival.width == 2) {
            ((u16*)to)[place] = ((const u16*)from)[row];
        } else {
            ((u32*)to)[place] = ((const u32*)from)[row];
        }
    }
}

KERNEL widen(u64 narrow, u64 narrow_width, u64 wide, u64 wide_width, u64 places) {
    for (u64 place = blockIdx.x * blockDim.x + threadIdx.x; place < places; place += gridDim.x * blockDim.x) {
        const u32 code = narrow_width == 1 ? ((const u8*)narrow)[place] : ((const u16*)narrow)[place];
        if (wide_width == 2) {
            ((u16*)wide)[place] = (u16)code;
        } else {
            ((u32*)wide)[place] = code;
        }
    }
}

// `codes[c]` is the new code of c.
struct Recoding {
    u64 from;
    u64 from_width;
    u64 codes;
    u64 to;
    u64 to_width;
};

// Copies ring rows from `start` on to places 0, 1, …
KERNEL recode(const Recoding* recodings, u64 start, u64 rows, u64 capacity) {
    const Recoding recoding = recodings[blockIdx.x];
    const u32* codes = (const u32*)recoding.codes;
    for (u64 row = blockIdx.y * blockDim.x + threadIdx.x; row < rows; row += gridDim.y * blockDim.x) {
        u64 place = start + row;
        if (place >= capacity) place -= capacity;
        u32 code;
        if (recoding.from_width == 1) {
            code = ((const u8*)recoding.from)[place];
        } else if (recoding.from_width == 2) {
            code = ((const u16*)recoding.from)[place];
        } else {
            code = ((const u32*)recoding.from)[place];
        }
        code = __ldg(codes + code);
        if (recoding.to_width == 1) {
            ((u8*)recoding.to)[row] = (u8)code;
        } else if (recoding.to_width == 2) {
            ((u16*)recoding.to)[row] = (u16)code;
        } else {
            ((u32*)recoding.to)[row] = code;
        }
    }
}
