"""Group counting with whole-array operations, as somebody would write it with PyTorch or CuPy.

Columns are combined into mixed-radix keys; keys of a small domain go into `bincount`, of one set or of many at once, the
others are sorted by `unique`. Pairs of columns may also be counted by the product of their one-hot matrix with itself.
Each way is a form; all of them give the same numbers.
"""

import numpy

# Cells that an array is worth, for each row and beside.
CELLS_A_ROW, CELLS = 4, 4096
# Keys at once where many sets are counted together.
AT_ONCE = 1 << 26
# Keys stay below this.
LARGEST_KEY = 1 << 62
# Bytes of a map of (class, subject) pairs, at most.
LARGEST_MAP = 1 << 32
BEYOND = 1 << 40


class Table:
    """A table as the folder holds it, and its columns on the device."""

    def __init__(self, arrays, description, folder):
        self.arrays = arrays
        self.rows = description["rows"]
        self.values = [column["values"] for column in description["columns"]]
        data = numpy.memmap(folder / description["file"], dtype=numpy.uint8, mode="r")

        def read(column):
            end = column["offset"] + self.rows * column["bytes"]
            return numpy.array(data[column["offset"] : end]).view(f"<u{column['bytes']}")

        self.codes = [read(column) for column in description["columns"]]
        subjects = description.get("subjects")
        self.people = subjects["values"] if subjects else None
        self.numbers = read(subjects) if subjects else None
        self.columns = self.subjects = None

    def upload(self):
        """As they are, in their narrow types; widened there."""
        as_words = lambda codes: self.arrays.upload(codes.astype(numpy.int32) if codes.itemsize > 1 else codes)
        self.columns = self.arrays.zeros((len(self.codes), self.rows))
        for at, codes in enumerate(self.codes):
            self.columns[at] = as_words(codes)
        if self.people is not None:
            self.subjects = self.arrays.wide(as_words(self.numbers))

    def drop(self):
        self.columns = self.subjects = None
        self.arrays.release()

    def cells(self, columns):
        cells = 1
        for column in columns:
            cells *= self.values[column]
        return cells

    def is_dense(self, cells):
        return cells <= CELLS_A_ROW * self.rows + CELLS

    def classes(self, columns):
        """A number below the second answer for each row, equal where the columns are."""
        keys, domain = None, 1
        for column in columns:
            radix = self.values[column]
            if domain * radix >= LARGEST_KEY:
                keys, domain = self.arrays.numbered(keys)
            if domain * radix >= 1 << 31 and keys is not None:
                keys = self.arrays.wide(keys)
            keys = self.columns[column] if keys is None else keys * radix + self.columns[column]
            domain *= radix
        return (self.arrays.zeros(self.rows) if keys is None else keys), domain


def summary(arrays, counts, k, judging):
    """A row of numbers for each row of counts: what there is, or (judging) whether some class is below k."""
    smallest = arrays.smallest(arrays.where(counts > 0, counts, BEYOND), 1)
    if judging:
        return arrays.wide(smallest < k)[:, None]
    below = (counts > 0) & (counts < k)
    records = (counts * below).sum(1)
    return arrays.stack([smallest, (counts > 0).sum(1), below.sum(1), records, records])


def one_by_one(table, sets, k, judging, always_sorted=False):
    def of(columns):
        keys, cells = table.classes(columns)
        dense = table.is_dense(cells) and not always_sorted
        counts = table.arrays.bincount(keys, cells) if dense else table.arrays.distinct_counts(keys)
        return summary(table.arrays, counts[None, :], k, judging)

    return table.arrays.download(table.arrays.concatenate([of(columns) for columns in sets]))


def sorted_keys(table, sets, k, judging):
    return one_by_one(table, sets, k, judging, always_sorted=True)


def batched(table, sets, k, judging):
    """Sets of one size and of about as many cells share one `bincount`; the rest is counted alone."""
    arrays = table.arrays
    order = sorted(range(len(sets)), key=lambda at: (len(sets[at]), table.cells(sets[at])))
    found, places, at = [], [], 0
    while at < len(order):
        size = len(sets[order[at]])
        group = []
        for place in order[at:]:
            cells = table.cells(sets[place])
            if len(sets[place]) != size or (len(group) + 1) * max(cells, table.rows) > AT_ONCE:
                break
            group.append(place)
        if size == 0 or len(group) < 2 or not table.is_dense(table.cells(sets[group[-1]])):
            group = order[at : at + 1]
            found.append(arrays.upload(one_by_one(table, [sets[group[0]]], k, judging)))
        else:
            cells = table.cells(sets[group[-1]])
            keys = offsets(table, group, cells)
            keys = keys + mixed(table, [sets[place] for place in group])
            counts = arrays.bincount(keys.reshape(-1), len(group) * cells)
            found.append(summary(arrays, counts.reshape(len(group), cells), k, judging))
        places += group
        at += len(group)
    answer = numpy.empty((len(sets), 1 if judging else 5), dtype=numpy.int64)
    answer[places] = arrays.download(arrays.concatenate(found))
    return answer


def offsets(table, group, cells):
    return table.arrays.upload((numpy.arange(len(group)) * cells).astype(numpy.int32))[:, None]


def mixed(table, sets):
    """The keys of some sets of one size, a row each."""
    at = numpy.array(sets, dtype=numpy.int64)
    radices = numpy.array(table.values, dtype=numpy.int32)[at]
    keys = table.columns[table.arrays.upload(at[:, 0])]
    for i in range(1, at.shape[1]):
        keys = keys * table.arrays.upload(radices[:, i])[:, None] + table.columns[table.arrays.upload(at[:, i])]
    return keys


def people(table, sets, k, judging, with_map=False):
    """A class counts a subject once: distinct (class, subject) pairs."""
    arrays = table.arrays

    def of(columns):
        classes, cells = table.classes(columns)
        if not table.is_dense(cells) or cells * table.people >= LARGEST_KEY:
            classes, cells = arrays.numbered(classes)
        pairs = arrays.wide(classes) * table.people + table.subjects
        if with_map and cells * table.people <= LARGEST_MAP:
            support = arrays.marks(cells * table.people, pairs).reshape(cells, table.people).sum(1)
        else:
            support = arrays.bincount(arrays.distinct(pairs) // table.people, cells)
        found = summary(arrays, support[None, :], k, judging)
        if not judging:
            rows = (support < k)[arrays.wide(classes)]
            found[0, 3] = rows.sum()
            found[0, 4] = arrays.marks(table.people, table.subjects[rows]).sum()
        return found

    return arrays.download(arrays.concatenate([of(columns) for columns in sets]))


def people_in_a_map(table, sets, k, judging):
    return people(table, sets, k, judging, with_map=True)


def counting_forms(table):
    if table.people is not None:
        return {"sort": people, "map": people_in_a_map}
    return {"bincount, else sort": one_by_one, "bincount of many sets": batched, "sort": sorted_keys}


def pairs_one_by_one(table, pairs):
    def of(pair):
        keys, cells = table.classes(pair)
        return table.arrays.bincount(keys, cells)

    return table.arrays.download(table.arrays.concatenate([of(pair) for pair in pairs]))


def pairs_batched(table, pairs):
    """Neighbours share one `bincount`, whose cells lie one after the other."""
    arrays = table.arrays
    found, at = [], 0
    while at < len(pairs):
        group, begins, cells = [], [], 0
        while at < len(pairs) and (not group or max((len(group) + 1) * table.rows, cells) <= AT_ONCE):
            begins.append(cells)
            cells += table.cells(pairs[at])
            group.append(pairs[at])
            at += 1
        keys = mixed(table, group) + arrays.upload(numpy.array(begins, dtype=numpy.int32))[:, None]
        found.append(arrays.bincount(keys.reshape(-1), cells))
    return arrays.download(arrays.concatenate(found))


def pairs_by_product(table, pairs):
    arrays = table.arrays
    begins = numpy.concatenate([[0], numpy.cumsum(table.values)]).astype(numpy.int32)
    codes = table.columns + arrays.upload(begins[:-1])[:, None]
    met = arrays.one_hot_product(codes, int(begins[-1]))
    block = lambda a, b: met[begins[a] : begins[a + 1], begins[b] : begins[b + 1]].reshape(-1)
    return arrays.download(arrays.concatenate([block(a, b) for a, b in pairs]))


PAIR_FORMS = {
    "bincount": pairs_one_by_one,
    "bincount of many pairs": pairs_batched,
    "one-hot product": pairs_by_product,
}


def borders(table, width, k, judge):
    """Find-QID level by level: a set is judged where all its subsets of one column less are no quasi-identifiers.

    The smallest quasi-identifiers, ascending, a 0, and the largest sets that are none; sets as bits of a number.
    """
    columns = lambda mask: [column for column in range(width) if mask >> column & 1]
    smallest, none = [], {0}
    level = [1 << column for column in range(width)]
    while level:
        found = judge(table, [columns(mask) for mask in level], k, True)[:, 0]
        smallest += [mask for mask, is_qid in zip(level, found) if is_qid]
        passed = {mask for mask, is_qid in zip(level, found) if not is_qid}
        none |= passed
        wider = {mask | 1 << column for mask in passed for column in range(width) if not mask >> column & 1}
        level = sorted(mask for mask in wider if all(mask ^ 1 << column in passed for column in columns(mask)))
    largest = [m for m in none if not any(m | 1 << c in none for c in range(width) if not m >> c & 1)]
    return numpy.array(sorted(smallest) + [0] + sorted(mask for mask in largest if mask), dtype=numpy.int64)
