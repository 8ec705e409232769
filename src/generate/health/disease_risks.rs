//! Diseases with risk factors and drugs. The probability is logistic in a sum of log-odds. Sources and choices:
//! docs/performance.md, "The medical use case".

use crate::generate::seeded_random::{SeededRandom, exp};

/// Disease of \[POD] §6.4.
pub const CORONARY_ARTERY_DISEASE: &str = "DOID:3393";

/// Risk factors as log-odds.
#[derive(Debug)]
pub(super) struct DiseaseRisk {
    /// Human Disease Ontology ID.
    pub doid: &'static str,
    /// Woman aged 60, body mass index 25, mean height, blood group O, no risk allele.
    base: f64,
    male: f64,
    per_decade: f64,
    /// Per kg/m².
    per_mass_index: f64,
    /// Per centimeter above the mean of the sex.
    per_centimeter: f64,
    /// Blood groups O, A, B and AB.
    blood: [f64; 4],
    /// Risk variant.
    pub snp: &'static str,
    /// Among all alleles.
    allele_share: f64,
    per_allele: f64,
    /// Prescribed drug.
    pub drug: &'static str,
    /// Share of patients with the drug.
    treated: f64,
    /// Share of others with it.
    untreated_users: f64,
}

pub(super) const DISEASE_RISKS: [DiseaseRisk; 3] = [
    DiseaseRisk {
        doid: CORONARY_ARTERY_DISEASE,
        base: -3.901,
        male: 0.51,
        per_decade: 0.908,       // odds ratio 2.48
        per_mass_index: 0.0478,  // hazard ratio 1.27 per 5 kg/m²
        per_centimeter: -0.0112, // hazard ratio 0.93 per 6.5 cm
        blood: [0.0, 0.0583, 0.1398, 0.207],
        snp: "rs1333049",
        allele_share: 0.47,
        per_allele: 0.3075, // odds ratio 1.36
        drug: "simvastatin",
        treated: 0.87,
        untreated_users: 0.11,
    },
    DiseaseRisk {
        doid: "DOID:9352",
        base: -2.974,
        male: 0.2232,
        per_decade: 0.5878,    // odds ratio 1.8
        per_mass_index: 0.154, // hazard ratio 2.16 per 5 kg/m²
        per_centimeter: 0.0,
        blood: [0.0; 4],
        snp: "rs7903146",
        allele_share: 0.29,
        per_allele: 0.3365, // odds ratio 1.40
        drug: "metformin",
        treated: 0.5,
        untreated_users: 0.0,
    },
    DiseaseRisk {
        doid: "DOID:10652",
        base: -6.023,
        male: -0.8077,
        per_decade: 1.69,
        per_mass_index: 0.0,
        per_centimeter: 0.0,
        blood: [0.0; 4],
        snp: "rs429358",
        allele_share: 0.14,
        per_allele: 1.1632, // odds ratio 3.2
        drug: "donepezil",
        treated: 0.5,
        untreated_users: 0.0,
    },
];

#[derive(Debug)]
pub(super) struct RiskFactors {
    pub is_male: bool,
    pub age: f64,
    pub mass_index: f64,
    /// Centimeters above the mean of the sex.
    pub height: f64,
    /// As written in the record.
    pub blood_type: &'static str,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct DiseaseDraw {
    pub is_sick: bool,
    pub is_carrier: bool,
    pub takes_drug: bool,
}

impl DiseaseRisk {
    /// For a subject with `alleles` risk alleles.
    pub(super) fn probability(&self, factors: &RiskFactors, alleles: u8) -> f64 {
        let blood = match factors.blood_type.trim_end_matches(['+', '-']) {
            "A" => self.blood[1],
            "B" => self.blood[2],
            "AB" => self.blood[3],
            _ => self.blood[0],
        };
        let odds = self.base
            + if factors.is_male { self.male } else { 0.0 }
            + self.per_decade * (factors.age - 60.0) / 10.0
            + self.per_mass_index * (factors.mass_index - 25.0)
            + self.per_centimeter * factors.height
            + blood
            + self.per_allele * f64::from(alleles);
        1.0 / (1.0 + exp(-odds))
    }

    /// Always uses four draws.
    pub(super) fn draw(&self, factors: &RiskFactors, dice: &mut SeededRandom) -> DiseaseDraw {
        let alleles = u8::from(dice.chance(self.allele_share)) + u8::from(dice.chance(self.allele_share));
        let is_sick = dice.chance(self.probability(factors, alleles));
        let takes_drug = dice.chance(if is_sick { self.treated } else { self.untreated_users });
        DiseaseDraw { is_sick, is_carrier: alleles > 0, takes_drug }
    }
}
