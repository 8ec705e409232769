use super::*;
use crate::daemon::state::rows::RowPacker;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use throng_core::values::digest::DigestKey;
use throng_core::values::raw_batch::RawToken;
use throng_core::values::schema::Schema;
use throng_risk::adjacency::ValueNode;

const WIDTH: usize = 3;

fn books() -> Vec<Codebook> {
    let attribute = |name: &str| format!("[[attribute]]\nname = \"{name}\"\ntype = \"string\"\n");
    let text = format!("name = \"t\"\n{}{}{}", attribute("a"), attribute("b"), attribute("c"));
    let schema = Schema::parse(&text, "t.toml", Path::new("")).expect("a schema");
    let book = |a: &Arc<_>| Codebook::new(Arc::clone(a), &DigestKey([3; 32]), 1000).expect("a codebook");
    schema.attributes.iter().map(book).collect()
}

fn batch(rows: &[[u8; WIDTH]], books: &mut [Codebook]) -> CodeBatch {
    let mut batch = CodeBatch::new(WIDTH);
    for row in rows {
        for ((column, book), value) in batch.columns.iter_mut().zip(&mut *books).zip(row) {
            column.push(book.encode(RawToken::Text(&format!("v{value}"))).expect("a text"));
        }
        batch.subjects.push(u64::from(row[0]) + 1);
    }
    batch
}

type ValueOccurrences = BTreeMap<(usize, String), u64>;

fn window_by_definition(stream: &[Vec<[u8; WIDTH]>], capacity: usize) -> (ValueOccurrences, u64) {
    let rows: Vec<&[u8; WIDTH]> = stream.iter().flatten().collect();
    let rows = &rows[rows.len().saturating_sub(capacity)..];
    let mut occurrences = ValueOccurrences::new();
    for row in rows {
        for (attribute, value) in row.iter().enumerate() {
            *occurrences.entry((attribute, format!("\"v{value}\""))).or_default() += 1;
        }
    }
    (occurrences, rows.len() as u64)
}

fn full_adjacency(model: &StreamModel) -> Adjacency {
    model.adjacency().to_fine_adjacency().expect("a sound model")
}

fn counted_values(model: &mut StreamModel, books: &[Codebook]) -> (ValueOccurrences, u64) {
    model.wait_for_pairs().expect("room");
    for (node, n) in full_adjacency(model).nodes() {
        assert_eq!(model.marginals.n(node.attribute, node.code), n);
    }
    assert_eq!(model.marginals.records(), model.counted().records());
    let text = |node: ValueNode| (node.attribute, books[node.attribute].canonical(node.code).to_owned());
    let occurrences = full_adjacency(model).nodes().map(|(node, n)| (text(node), n)).collect();
    (occurrences, model.counted().records())
}

fn edges(model: &mut StreamModel, books: &[Codebook]) -> BTreeMap<(usize, String, usize, String), u64> {
    model.wait_for_pairs().expect("room");
    let text = |node: ValueNode| books[node.attribute].canonical(node.code).to_owned();
    full_adjacency(model).edges().map(|(u, v, n)| ((u.attribute, text(u), v.attribute, text(v)), n)).collect()
}

fn streams() -> impl Strategy<Value = Vec<Vec<[u8; WIDTH]>>> {
    let row = [0_u8..4, 0_u8..6, 0_u8..3];
    proptest::collection::vec(proptest::collection::vec(row, 0..14), 0..10)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn model_after_each_batch_and_restart_equals_window(
        stream in streams(),
        capacity in 1_usize..40,
        restart in 0_usize..10,
        max_edges in prop_oneof![2 => Just(1_u64 << 20), 1 => 4_u64..50],
        plans in proptest::collection::vec(any::<bool>(), 10),
    ) {
        let settings = ModelSettings { window_records: capacity, max_edges, value_bytes: None };
        let new = |rows, derived: &[_], left_out: &[_]| {
            let past = StreamProgress { rows, derived: derived.to_vec(), left_out: left_out.to_vec(), ..StreamProgress::default() };
            StreamModel::new(WIDTH, vec![0, 1, 2], settings, &past).expect("attributes in order")
        };
        let (mut model, mut known) = (new(0, &[], &[]), books());
        let (mut packer, mut blocks, mut first) = (RowPacker::default(), Vec::new(), 0_u64);
        for (number, rows) in stream.iter().enumerate() {
            let batch = batch(rows, &mut known);
            if batch.rows() > 0 {
                blocks.push(packer.pack(&batch, first, &[0, 1, 2], &known));
            }
            if plans[number] {
                model.coarsen();
            }
            model.observe_first_batch(&batch);
            let (derived, left_out) = (model.derived(), model.counted().left_out_pairs());
            model.learn(&batch, &known).expect("room");
            first += batch.rows() as u64;
            prop_assert_eq!(counted_values(&mut model, &known), window_by_definition(&stream[..=number], capacity));
            let oldest = first - model.window().rows() as u64;
            blocks.retain(|block| block.last >= oldest);
            if number == restart {
                let (mut again, mut others) = (new(first, &derived, &left_out), books());
                for block in &blocks {
                    again.restore(block, &mut others).expect("a block of these attributes");
                }
                prop_assert_eq!(edges(&mut again, &others), edges(&mut model, &known));
                prop_assert_eq!(again.derived(), model.derived());
                prop_assert_eq!(again.counted().left_out_pairs(), model.counted().left_out_pairs());
                (model, known) = (again, others);
            }
        }
        let before = edges(&mut model, &known);
        let size = model.size();
        model.rebuild().expect("room");
        if size.left_out_pairs == 0 && model.size().left_out_pairs == 0 {
            prop_assert_eq!(edges(&mut model, &known), before);
        }
    }

    #[test]
    fn model_counts_after_dictionary_compaction_are_unchanged(stream in streams(), capacity in 1_usize..20) {
        let settings = ModelSettings { window_records: capacity, max_edges: 1 << 20, value_bytes: None };
        let mut model = StreamModel::new(WIDTH, vec![0, 1, 2], settings, &StreamProgress::default()).expect("attributes in order");
        let mut known = books();
        for rows in &stream {
            model.coarsen();
            let batch = batch(rows, &mut known);
            model.observe_first_batch(&batch);
            model.learn(&batch, &known).expect("room");
            let before = edges(&mut model, &known);
            for (attribute, book) in known.iter_mut().enumerate() {
                let mut used = vec![false; book.codes()];
                model.mark_used(attribute, &mut used);
                let map = book.retain(&used);
                model.remap(attribute, &map).expect("every counted value is kept");
            }
            prop_assert_eq!(edges(&mut model, &known), before);
        }
    }
}

proptest! {
    /// The window is the longest suffix within the byte limit.
    #[test]
    fn window_with_byte_limit_depends_only_on_stream(
        stream in streams(),
        capacity in 1_usize..40,
        values in 1_u64..14,
        restart in 0_usize..10,
    ) {
        let mut known = books();
        let code = known[0].encode(RawToken::Text("v0")).expect("a text");
        let value = known[0].approximate_value_bytes(code);
        let settings = ModelSettings {
            window_records: capacity, max_edges: 1 << 20, value_bytes: Some(values * value),
        };
        let new = |rows| {
            let past = StreamProgress { rows, ..StreamProgress::default() };
            StreamModel::new(WIDTH, vec![0, 1, 2], settings, &past).expect("attributes in order")
        };
        let (mut model, mut packer, mut blocks, mut first) = (new(0), RowPacker::default(), Vec::new(), 0_u64);
        let mut all: Vec<[u8; WIDTH]> = Vec::new();
        for (number, rows) in stream.iter().enumerate() {
            let batch = batch(rows, &mut known);
            if batch.rows() > 0 {
                blocks.push(packer.pack(&batch, first, &[0, 1, 2], &known));
            }
            all.extend(rows);
            model.learn(&batch, &known).expect("room");
            first += batch.rows() as u64;
            let fits = |rows: &[[u8; WIDTH]]| {
                let different: std::collections::BTreeSet<(usize, u8)> =
                    rows.iter().flat_map(|row| row.iter().copied().enumerate()).collect();
                rows.len() <= capacity && different.len() as u64 <= values
            };
            let expected = (0..=all.len()).rev().take_while(|&n| n == all.len() || n + 1 == all.len() || fits(&all[n..])).min();
            let expected = &all[expected.unwrap_or(0)..];
            let seen = |model: &StreamModel, books: &[Codebook]| -> Vec<Vec<String>> {
                let text = |a: usize| model.window().codes(a).map(|c| books[a].canonical(c).to_owned()).collect();
                (0..WIDTH).map(text).collect()
            };
            let texts = |a: usize| expected.iter().map(|row| format!("\"v{}\"", row[a])).collect::<Vec<_>>();
            prop_assert_eq!(seen(&model, &known), (0..WIDTH).map(texts).collect::<Vec<_>>());
            let (_, records) = self::counted_values(&mut model, &known);
            prop_assert_eq!(records, expected.len() as u64, "what has left is counted no more");
            if number == restart {
                let (mut again, mut others) = (new(first), books());
                for block in &blocks {
                    again.restore(block, &mut others).expect("a block of these attributes");
                }
                prop_assert_eq!(edges(&mut again, &others), edges(&mut model, &known));
                prop_assert_eq!(seen(&again, &others), seen(&model, &known));
                (model, known) = (again, others);
            }
            for (attribute, book) in known.iter_mut().enumerate() {
                let mut used = vec![false; book.codes()];
                model.mark_used(attribute, &mut used);
                let map = book.retain(&used);
                model.remap(attribute, &map).expect("every counted value is kept");
            }
        }
    }
}

#[test]
fn model_pair_omitted_before_restart_stays_omitted() {
    let settings = ModelSettings { window_records: 100, max_edges: 10, value_bytes: None };
    let mut model =
        StreamModel::new(WIDTH, vec![0, 1, 2], settings, &StreamProgress::default()).expect("attributes in order");
    let mut known = books();
    let rows: Vec<[u8; WIDTH]> = (0..30).map(|n| [n % 2, n, n % 3]).collect();
    let batch = batch(&rows, &mut known);
    let block = RowPacker::default().pack(&batch, 0, &[0, 1, 2], &known);
    model.learn(&batch, &known).expect("room");
    model.wait_for_pairs().expect("room");
    let left_out = model.counted().left_out_pairs();
    assert!(!left_out.is_empty() && model.counted().edge_count() <= 10);
    let past = StreamProgress { rows: 30, left_out: left_out.clone(), ..StreamProgress::default() };
    let mut again = StreamModel::new(WIDTH, vec![0, 1, 2], settings, &past).expect("attributes in order");
    let mut others = books();
    again.restore(&block, &mut others).expect("a block of these attributes");
    assert_eq!(edges(&mut again, &others), edges(&mut model, &known));
    assert_eq!(again.counted().left_out_pairs(), left_out);
}

/// ZIP and office determine each other, until a ZIP has two offices.
#[test]
fn model_identical_attributes_are_counted_once() {
    // 60 ZIPs × 7 signs: with offices too many edges.
    let rows: Vec<[u8; WIDTH]> = (0..200_u8).map(|n| [n % 60, 60 - n % 60, n % 7]).collect();
    let settings = ModelSettings { window_records: 400, max_edges: 250, value_bytes: None };
    let model = || StreamModel::new(WIDTH, vec![0, 1, 2], settings, &StreamProgress::default()).expect("in order");
    let (mut coarse, mut fine, mut known) = (model(), model(), books());
    let first = batch(&rows, &mut known);
    coarse.observe_first_batch(&first);
    for model in [&mut coarse, &mut fine] {
        model.learn(&first, &known).expect("room");
        model.wait_for_pairs().expect("room");
    }
    assert_eq!((coarse.derived(), coarse.size().left_out_pairs), (vec![(1, 0)], 0));
    assert!(fine.derived().is_empty() && fine.size().left_out_pairs > 0);
    assert!(coarse.size().edges < 250 && coarse.size().nodes == fine.size().nodes);
    let second = batch(&[[3, 9, 1]], &mut known);
    coarse.observe_first_batch(&second);
    coarse.learn(&second, &known).expect("room");
    coarse.wait_for_pairs().expect("room");
    assert_eq!(coarse.derived(), [], "the ZIP has a second office");
    assert!(coarse.size().left_out_pairs > 0 && coarse.size().edges <= 250);
}
