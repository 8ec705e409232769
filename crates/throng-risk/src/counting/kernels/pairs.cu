// Inferences from pair counts ([POD] §5.1 and Alg. 7): P(v|u) = n(u,v) / n(u).

struct Pair {
    u64 counts;
    u64 probabilities; // start: P(b|a) for all cells, then P(a|b)
    u64 rows;          // start: nodes of the first column, then the second
    u32 first;
    u32 second;
};

struct Node {
    u64 records;
    u64 met;
};

// One node per thread; probabilities are optional. Quotients of integers below 2^53 are correctly rounded on any
// processor.
KERNEL infer(const Pair* pairs, const u32* counts, double* probabilities, Node* nodes) {
    const Pair pair = pairs[blockIdx.x];
    const u32* cells = counts + pair.counts;
    const u64 product = (u64)pair.first * pair.second;
    for (u32 node = blockIdx.y * blockDim.x + threadIdx.x; node < pair.first + pair.second; node += gridDim.y * blockDim.x) {
        const bool of_first = node < pair.first;
        const u32 own = of_first ? node : node - pair.first;
        const u64 begin = of_first ? (u64)own * pair.second : own;
        const u64 step = of_first ? 1 : pair.second;
        const u32 others = of_first ? pair.second : pair.first;
        u64 records = 0, met = 0;
        for (u32 other = 0; other < others; other++) {
            const u32 count = cells[begin + other * step];
            records += count;
            met += count != 0;
        }
        nodes[pair.rows + node] = Node{records, met};
        if (probabilities == 0 || records == 0) continue;
        double* row = probabilities + pair.probabilities + (of_first ? 0 : product);
        for (u32 other = 0; other < others; other++) {
            const u64 cell = begin + other * step;
            row[cell] = (double)cells[cell] / (double)records;
        }
    }
}
