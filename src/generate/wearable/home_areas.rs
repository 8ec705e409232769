//! Homes: 48 areas with ZIP prefixes and long tails of ZIP codes.

use crate::generate::alias_table::AliasTable;
use crate::generate::seeded_random::hash_bits;

/// ZIP prefix, centre in thousandths of a degree, hours from UTC (winter time).
#[derive(Debug)]
pub struct HomeArea {
    pub zip3: u16,
    pub lat: i64,
    pub lon: i64,
    pub utc_hours: i64,
}

const fn area(zip3: u16, lat: i64, lon: i64, utc_hours: i64) -> HomeArea {
    HomeArea { zip3, lat, lon, utc_hours }
}

/// Areas by descending subjects; the shifted cohort reverses them.
pub const HOME_AREAS: [HomeArea; 48] = [
    area(606, 41_878, -87_630, -6),
    area(100, 40_751, -73_987, -5),
    area(900, 34_052, -118_244, -8),
    area(770, 29_760, -95_370, -6),
    area(850, 33_448, -112_074, -7),
    area(112, 40_650, -73_950, -5),
    area(191, 39_953, -75_164, -5),
    area(782, 29_425, -98_494, -6),
    area(921, 32_716, -117_161, -8),
    area(752, 32_777, -96_797, -6),
    area(951, 37_338, -121_886, -8),
    area(787, 30_267, -97_743, -6),
    area(322, 30_332, -81_656, -5),
    area(432, 39_961, -82_999, -5),
    area(282, 35_227, -80_843, -5),
    area(462, 39_768, -86_158, -5),
    area(941, 37_775, -122_419, -8),
    area(981, 47_606, -122_332, -8),
    area(802, 39_739, -104_990, -7),
    area(200, 38_907, -77_037, -5),
    area(372, 36_163, -86_781, -6),
    area(731, 35_468, -97_516, -6),
    area(799, 31_761, -106_485, -7),
    area(21, 42_360, -71_059, -5),
    area(972, 45_515, -122_679, -8),
    area(891, 36_170, -115_140, -8),
    area(482, 42_331, -83_046, -5),
    area(381, 35_150, -90_049, -6),
    area(402, 38_253, -85_759, -5),
    area(212, 39_290, -76_612, -5),
    area(532, 43_039, -87_907, -6),
    area(871, 35_084, -106_650, -7),
    area(857, 32_223, -110_975, -7),
    area(937, 36_738, -119_787, -8),
    area(958, 38_582, -121_494, -8),
    area(641, 39_100, -94_579, -6),
    area(303, 33_749, -84_388, -5),
    area(681, 41_257, -95_935, -6),
    area(336, 27_951, -82_457, -5),
    area(331, 25_762, -80_192, -5),
    area(701, 29_951, -90_072, -6),
    area(554, 44_978, -93_265, -6),
    area(441, 41_499, -81_694, -5),
    area(152, 40_441, -79_996, -5),
    area(631, 38_627, -90_199, -6),
    area(841, 40_761, -111_891, -7),
    area(968, 21_307, -157_858, -10),
    area(995, 61_218, -149_900, -9),
];

const ZIP_CODES_PER_AREA: u64 = 60;

/// Draws area and ZIP code of a home.
#[derive(Debug)]
pub struct HomeSampler {
    areas: AliasTable,
    codes: AliasTable,
}

impl HomeSampler {
    #[must_use]
    pub fn new(shifted: bool) -> Self {
        let mut weights = AliasTable::zipf_weights(HOME_AREAS.len(), 0.9);
        if shifted {
            weights.reverse();
        }
        Self {
            areas: AliasTable::new(&weights),
            codes: AliasTable::new(&AliasTable::zipf_weights(ZIP_CODES_PER_AREA as usize, 1.0)),
        }
    }

    /// Returns the area, and the ZIP code below 100,000.
    #[must_use]
    pub fn sample_home(&self, area_bits: u64, code_bits: u64) -> (&'static HomeArea, u32) {
        let area = &HOME_AREAS[self.areas.sample_outcome(area_bits)];
        // 37 is coprime to 99: sixty distinct codes, in a different order per area.
        let rank = self.codes.sample_outcome(code_bits) as u64;
        let code = 1 + (rank * 37 + u64::from(area.zip3)) % 99;
        (area, u32::from(area.zip3) * 100 + code as u32)
    }
}

/// Returns the centre of a district, within a quarter of a degree of the area's.
#[must_use]
pub fn district_centre(area: &HomeArea, zip: u32) -> (i64, i64) {
    let bits = hash_bits(u64::from(zip));
    (area.lat + (bits % 501) as i64 - 250, area.lon + (bits >> 32) as i64 % 501 - 250)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::seeded_random::SeededRandom;
    use std::collections::BTreeSet;

    #[test]
    fn zip_codes_match_their_area_and_vary() {
        let homes = HomeSampler::new(false);
        let mut dice = SeededRandom::new(1, 0);
        let mut seen = BTreeSet::new();
        for _ in 0..20_000 {
            let (area, zip) = homes.sample_home(dice.bits(), dice.bits());
            assert_eq!(zip / 100, u32::from(area.zip3));
            let (lat, lon) = district_centre(area, zip);
            assert!((lat - area.lat).abs() <= 250 && (lon - area.lon).abs() <= 250);
            seen.insert(zip);
        }
        // The rarest of 2,880 codes has probability 3e-5.
        assert!((1_500..=2_880).contains(&seen.len()), "{}", seen.len());
    }
}
