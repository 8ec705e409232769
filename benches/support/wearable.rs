//! Treats wearable batches in memory by `config/wearable.toml` through the public API.

use std::sync::Arc;

use throng::config::{Config, DiversityKind, ModelKind, PrivacyModel};
use throng::daemon::engine::release::verifier_terms::group_terms;
use throng::generate::{RecordStream, WearableSettings, WearableStream};
use throng::planner::planner_sample::PlannerSample;
use throng::planner::{PlannerSettings, make_plan};
use throng::start::configured_groups::group_shapes;
use throng::start::protections::protections;
use throng::start::record_formats::{codec_limits, fields};
use throng::start::schema_loading::load_schema;
use throng_core::ledger::subject_ledger::SubjectLedger;
use throng_core::plan::GroupShape;
use throng_core::plan::Plan;
use throng_core::privacy::protection::{ClosenessReference, ProtectionJudge, SensitiveProtection};
use throng_core::release::verified_batch::ReleasableBatch;
use throng_core::release::verifier_input::{GroupTerms, VerifierInput};
use throng_core::release::verify::verify;
use throng_core::stream::batch_encoding::encode;
use throng_core::stream::input_batch::InputBatch;
use throng_core::treatment::batch_treatment::{
    GroupNames, ProtectedAttribute, TreatmentInput, TreatmentRules, TreatmentSettings, group_names, treat_batch,
};
use throng_core::treatment::group_mask::GroupMask;
use throng_core::treatment::proposal::{Proposal, ProposedGroup};
use throng_core::values::code_batch::CodeBatch;
use throng_core::values::codebook::Codebook;
use throng_core::values::digest::{DigestKey, NameDigest};
use throng_core::values::raw_batch::RecordPosition;
use throng_core::values::schema::{Role, Schema};
use throng_core::values::subject_digest::SubjectDigester;
use throng_formats::JsonCodec;
use throng_formats::LineFormat;

const START_MS: i64 = 1_767_621_600_000;

const FILE: &str = "config/wearable.toml";

pub struct Stand {
    pub config: Config,
    schema: Arc<Schema>,
    shapes: Vec<GroupShape>,
    books: Vec<Codebook>,
    subjects: Option<SubjectDigester>,
    codec: JsonCodec,
    stream: WearableStream,
    sample: PlannerSample,
    planner: PlannerSettings,
    plan: Plan,
    names: GroupNames,
    terms: Vec<GroupTerms>,
    policy: TreatmentSettings,
    protections: Vec<SensitiveProtection>,
    protected: Vec<ProtectedAttribute>,
    digests: NameDigest,
    pub ledger: SubjectLedger,
    rows: u64,
    pub clock_ms: i64,
}

impl Stand {
    /// Creates a pipeline with a plan from `warm` batches of `rows` records.
    pub fn warm(rows: usize, warm: usize) -> Self {
        let config =
            throng::config::load(FILE.as_ref(), [("THRONG__STATE__SECRET_FILE".to_owned(), String::new())].into_iter())
                .expect("a sound configuration");
        let schema = load_schema(&config).expect("a sound schema");
        Self::warm_as(config, schema, rows, warm)
    }

    /// Creates a pipeline as [`warm`](Self::warm), with blood groups as sensitive values kept diverse by `diversity`.
    pub fn warm_and_diverse(diversity: DiversityKind, rows: usize, warm: usize) -> Self {
        let mut config =
            throng::config::load(FILE.as_ref(), [("THRONG__STATE__SECRET_FILE".to_owned(), String::new())].into_iter())
                .expect("a sound configuration");
        let mut schema = Arc::unwrap_or_clone(load_schema(&config).expect("a sound schema"));
        let blood = schema.position("blood_group").expect("an attribute of the schema");
        Arc::make_mut(&mut schema.attributes[blood]).role = Role::Sensitive;
        config.group.retain(|group| group.name != "blood");
        let body = config.group.iter_mut().find(|group| group.name == "body").expect("a group");
        body.attributes.push("blood_group".into());
        config.privacy.model = vec![PrivacyModel {
            kind: ModelKind::LDiversity,
            diversity,
            attribute: Some("blood_group".into()),
            l: Some(3.0),
            ..PrivacyModel::default()
        }];
        Self::warm_as(config, Arc::new(schema), rows, warm)
    }

    fn warm_as(config: Config, schema: Arc<Schema>, rows: usize, warm: usize) -> Self {
        let file = FILE;
        let protections = protections(&config, &schema, file).expect("sound models");
        let shapes = group_shapes(&config, &schema, file).expect("sound groups");
        let key = DigestKey([7; 32]);
        let books = schema
            .attributes
            .iter()
            .map(|a| {
                Codebook::new(Arc::clone(a), &key, config.tuning.max_dictionary_values).expect("sound hierarchies")
            })
            .collect();
        let subjects = schema.subject.map(|a| SubjectDigester::new(Arc::clone(&schema.attributes[a]), &key));
        let (limits, unknown) = codec_limits(&config);
        let k = config.privacy.k;
        let width = schema.attributes.len();
        let protected = |protection: &SensitiveProtection| ProtectedAttribute {
            attribute: protection.attribute,
            judge: ProtectionJudge::new(protection, None).expect("in range"),
        };
        let mut stand = Self {
            codec: JsonCodec::new(&fields(&schema, false), limits).with_unknown(unknown),
            stream: WearableStream::new(WearableSettings::default()).expect("the default settings"),
            sample: PlannerSample::new(width, config.plan.sample_records(), config.plan.window_records),
            planner: PlannerSettings { k, batch_records: rows, ..PlannerSettings::settings_from_config(&config) },
            plan: Plan::inactive(Vec::new()),
            names: GroupNames::default(),
            terms: Vec::new(),
            policy: TreatmentSettings { k, max_hold_batches: 0 },
            protected: protections.iter().map(protected).collect(),
            protections,
            digests: NameDigest::new(&key),
            ledger: SubjectLedger::default(),
            rows: 0,
            clock_ms: START_MS,
            config,
            schema,
            shapes,
            books,
            subjects,
        };
        stand.learn(rows, warm);
        for _ in 0..warm {
            stand.release(rows);
        }
        stand
    }

    fn learn(&mut self, rows: usize, warm: usize) {
        for _ in 0..warm {
            let batch = self.batch(rows);
            self.sample.add(&batch, self.rows);
            self.rows += rows as u64;
        }
        self.plan = self.make_plan();
        self.name_groups();
    }

    pub fn batch(&mut self, rows: usize) -> CodeBatch {
        let mut input = InputBatch::new(self.schema.attributes.len(), 0);
        let mut line = Vec::new();
        for row in 0..rows {
            line.clear();
            self.stream.append(&mut line);
            let offset = i64::try_from(row).expect("a batch is bounded");
            let coordinate = RecordPosition { topic: 0, partition: 0, offset, element: 0 };
            self.codec.decode(&line, coordinate, &mut input.raw).expect("a generated record");
        }
        let (batch, rejected) = encode(&input, &self.schema, &mut self.books, self.subjects.as_mut(), false);
        assert!(rejected.is_empty(), "generated records have the right types");
        batch
    }

    pub fn make_plan(&self) -> Plan {
        make_plan(1, &self.shapes, &self.sample, &self.books, &self.planner)
    }

    pub fn treat(&self, batch: &CodeBatch) -> Proposal {
        let (waited, at, everybody) = (vec![0; batch.rows()], self.ledger.at(self.clock_ms), GroupMask::default());
        let rules = TreatmentRules {
            plan: &self.plan,
            names: &self.names,
            books: &self.books,
            policy: &self.policy,
            protected: &self.protected,
        };
        treat_batch(&TreatmentInput { batch, mask: &everybody, waited: &waited, holding_ended: false }, &rules, &at)
    }

    pub fn verify(&self, proposed: Vec<ProposedGroup>, batch: &CodeBatch) -> ReleasableBatch {
        let at = self.ledger.at(self.clock_ms);
        let given = VerifierInput {
            subjects: &batch.subjects,
            columns: &batch.columns,
            waiting: 0,
            sequence: 1,
            age_ms: self.clock_ms,
        };
        verify(proposed, &given, &self.terms, &self.books, at, self.policy.k)
            .expect("the treatment proposes what may leave")
    }

    pub fn release(&mut self, rows: usize) -> ReleasableBatch {
        let batch = self.batch(rows);
        let verified = self.verify(self.treat(&batch).groups, &batch);
        self.ledger.apply(verified.delta());
        self.clock_ms += 1000;
        verified
    }

    fn name_groups(&mut self) {
        let names: Vec<&str> = self.schema.attributes.iter().map(|a| a.name.as_str()).collect();
        self.names =
            group_names(&self.plan, &names, |names| LineFormat::Json.layout(names), |name| self.digests.digest(name));
        let with_reference = |protection: &SensitiveProtection| (protection.clone(), ClosenessReference::default());
        let protections: Vec<(SensitiveProtection, ClosenessReference)> =
            self.protections.iter().map(with_reference).collect();
        self.terms = group_terms(&self.plan, &self.names, &protections);
    }
}
