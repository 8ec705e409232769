//! Row-major tables.

/// Rows as bytes: one, two or four per column, and optionally the subject.
pub(crate) struct RowMatrix {
    pub(crate) rows: usize,
    pub(crate) stride: usize,
    pub(crate) bytes: Vec<u8>,
    pub(crate) fields: Vec<RowField>,
    /// Position of the subject, if any; rows are then sorted by it.
    pub(crate) subject: Option<RowField>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RowField {
    pub(crate) offset: usize,
    pub(crate) width: usize,
    pub(crate) cardinality: usize,
}

impl RowField {
    fn place_after(stride: &mut usize, cardinality: usize) -> Self {
        let width = match cardinality {
            0..=0x100 => 1,
            0x101..=0x1_0000 => 2,
            _ => 4,
        };
        let offset = stride.next_multiple_of(width);
        *stride = offset + width;
        Self { offset, width, cardinality }
    }

    #[inline]
    pub(crate) fn visit_codes(
        &self,
        bytes: &[u8],
        stride: usize,
        rows: impl Iterator<Item = usize>,
        mut each: impl FnMut(u32),
    ) {
        let at = self.offset;
        match self.width {
            1 => rows.for_each(|row| each(u32::from(bytes[row * stride + at]))),
            2 => rows.for_each(|row| {
                let cell = &bytes[row * stride + at..row * stride + at + 2];
                each(u32::from(u16::from_le_bytes([cell[0], cell[1]])));
            }),
            _ => rows.for_each(|row| {
                let cell = &bytes[row * stride + at..row * stride + at + 4];
                each(u32::from_le_bytes([cell[0], cell[1], cell[2], cell[3]]));
            }),
        }
    }
}

impl RowMatrix {
    pub(crate) fn with_row_layout(cardinalities: &[usize], subjects: Option<usize>) -> Self {
        // Wide fields first keep all aligned.
        let mut columns: Vec<usize> = (0..cardinalities.len()).collect();
        columns.sort_by_key(|c| std::cmp::Reverse(cardinalities[*c]));
        let mut stride = 0;
        let subject = subjects.map(|count| RowField::place_after(&mut stride, count.max(1 << 17)));
        let mut fields = vec![RowField { offset: 0, width: 1, cardinality: 1 }; cardinalities.len()];
        columns.iter().for_each(|c| fields[*c] = RowField::place_after(&mut stride, cardinalities[*c]));
        let stride = if stride > 16 { stride.next_multiple_of(8) } else { stride.next_power_of_two() };
        Self { rows: 0, stride, bytes: Vec::new(), fields, subject }
    }

    pub(crate) fn append(&mut self, codes: &[Vec<u32>], subjects: &[u32]) {
        let (first, rows) = (self.rows, codes.first().map_or(0, Vec::len));
        self.bytes.resize((first + rows) * self.stride, 0);
        let subject = self.subject.iter().map(|field| (*field, subjects));
        let columns = self.fields.iter().copied().zip(codes.iter().map(Vec::as_slice));
        for (field, codes) in columns.chain(subject) {
            let cells = self.bytes[first * self.stride..].chunks_exact_mut(self.stride);
            let (at, end) = (field.offset, field.offset + field.width);
            cells.zip(codes).for_each(|(row, code)| {
                row[at..end].copy_from_slice(&code.to_le_bytes()[..field.width]);
            });
        }
        self.rows += rows;
    }

    pub(crate) fn clear(&mut self) {
        self.rows = 0;
        self.bytes.clear();
    }

    pub(crate) fn gather(&self, field: RowField, rows: &[u32], codes: &mut Vec<u32>) {
        codes.clear();
        let cell = |row: &u32| *row as usize * self.stride + field.offset;
        match field.width {
            // The most frequent width; checks the capacity once.
            1 => codes.extend(rows.iter().map(|row| u32::from(self.bytes[cell(row)]))),
            _ => field
                .visit_codes(&self.bytes, self.stride, rows.iter().map(|row| *row as usize), |code| codes.push(code)),
        }
    }
}
