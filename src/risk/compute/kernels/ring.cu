// The resident window: what is new comes as one block of bytes, column after column, and is put in its places here.

// A column of the block: where it begins, and the column of the ring it goes to.
struct Arrival {
    u64 from;
    u64 to;
    u64 width;
};

// Puts `rows` rows at the ring's places from `tail` on, around its end.
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

// Copies a column's codes into a wider column.
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
