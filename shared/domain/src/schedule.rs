//! Local times: a seller says "20:00 in Madrid", the system stores an instant and the zone's name.
//!
//! Zone rules change by decree, so the name is kept and the instant is computed with the bundled IANA database,
//! the same on a laptop and in a function.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use time::OffsetDateTime;

use crate::errors::{Error, Reason, Result};

/// Which of two instants is meant when the clocks go back and a local time occurs twice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Repeated {
    /// The first pass.
    #[default]
    Earlier,
    /// The second pass.
    Later,
}

/// Whether the name is one of the IANA database.
#[must_use]
pub fn is_zone(name: &str) -> bool {
    TimeZone::get(name).is_ok_and(|zone| zone.iana_name().is_some())
}

/// The instant of a local time such as `2027-07-01T20:00:00` in a zone such as `Europe/Madrid`.
///
/// # Errors
/// `invalid` for an unknown zone or a text that is no local time; `time-skipped` when the clocks jump over it.
pub fn instant(local: &str, zone: &str, repeated: Repeated) -> Result<OffsetDateTime> {
    if !is_zone(zone) {
        return Err(Reason::Invalid.into());
    }
    let zone = TimeZone::get(zone).map_err(|_| Reason::Invalid)?;
    let civil: DateTime = local.parse().map_err(|_| Reason::Invalid)?;
    let offset = match zone.to_ambiguous_timestamp(civil).offset() {
        AmbiguousOffset::Unambiguous { offset } => offset,
        AmbiguousOffset::Gap { .. } => return Err(Reason::TimeSkipped.into()),
        AmbiguousOffset::Fold { before, after } => match repeated {
            Repeated::Earlier => before,
            Repeated::Later => after,
        },
    };
    let timestamp = offset.to_timestamp(civil).map_err(|_| Reason::Invalid)?;
    OffsetDateTime::from_unix_timestamp_nanos(timestamp.as_nanosecond()).map_err(Error::fault)
}

/// What the clocks on the wall show, to the minute; people are told no year.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WallTime {
    /// Month, from 1.
    pub month: i8,
    /// Day of the month, from 1.
    pub day: i8,
    /// Hour, from 0.
    pub hour: i8,
    /// Minute, from 0.
    pub minute: i8,
}

/// What the clocks of a zone show at an instant.
///
/// # Errors
/// A fault for an unknown zone or an instant beyond all calendars.
pub fn wall_time(instant: OffsetDateTime, zone: &str) -> Result<WallTime> {
    let zone = TimeZone::get(zone).map_err(Error::fault)?;
    let timestamp = Timestamp::from_second(instant.unix_timestamp()).map_err(Error::fault)?;
    let civil = zone.to_datetime(timestamp);
    Ok(WallTime { month: civil.month(), day: civil.day(), hour: civil.hour(), minute: civil.minute() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::format_description::well_known::Rfc3339;

    fn utc(local: &str, zone: &str, repeated: Repeated) -> String {
        instant(local, zone, repeated).unwrap().format(&Rfc3339).unwrap()
    }

    #[test]
    fn a_summer_sale_set_in_winter_opens_on_summer_time() {
        use Repeated::Earlier;
        assert_eq!(utc("2027-01-15T20:00:00", "Europe/Madrid", Earlier), "2027-01-15T19:00:00Z");
        assert_eq!(utc("2027-07-15T20:00:00", "Europe/Madrid", Earlier), "2027-07-15T18:00:00Z");
        assert_eq!(utc("2027-07-15T20:00:00", "America/Sao_Paulo", Earlier), "2027-07-15T23:00:00Z");
        assert_eq!(utc("2027-01-15T20:00:00", "America/Sao_Paulo", Earlier), "2027-01-15T23:00:00Z");
        assert_eq!(utc("2018-12-15T20:00:00", "America/Sao_Paulo", Earlier), "2018-12-15T22:00:00Z");
        assert_eq!(utc("2027-01-15T20:00:00", "America/Santiago", Earlier), "2027-01-15T23:00:00Z");
        assert_eq!(utc("2027-07-15T20:00:00", "America/Santiago", Earlier), "2027-07-16T00:00:00Z");
    }

    #[test]
    fn a_skipped_time_is_refused() {
        let skipped = [
            ("2027-03-28T02:30:00", "Europe/Madrid"),
            ("2018-11-04T00:30:00", "America/Sao_Paulo"),
            ("2027-09-05T00:30:00", "America/Santiago"),
        ];
        for (local, zone) in skipped {
            let answer = instant(local, zone, Repeated::Earlier);
            assert!(matches!(answer, Err(Error::Rejected(Reason::TimeSkipped))), "{zone}: {answer:?}");
        }
    }

    #[test]
    fn a_repeated_time_has_two_instants_an_hour_apart() {
        let repeated = [
            ("2027-10-31T02:30:00", "Europe/Madrid"),
            ("2018-02-17T23:30:00", "America/Sao_Paulo"),
            ("2027-04-03T23:30:00", "America/Santiago"),
        ];
        for (local, zone) in repeated {
            let first = instant(local, zone, Repeated::Earlier).unwrap();
            let second = instant(local, zone, Repeated::Later).unwrap();
            assert_eq!(second - first, time::Duration::HOUR, "{zone}");
        }
        assert_eq!(utc("2027-10-31T02:30:00", "Europe/Madrid", Repeated::Earlier), "2027-10-31T00:30:00Z");
    }

    #[test]
    fn walls_show_the_time_of_their_zone() {
        let summer = OffsetDateTime::parse("2027-06-30T22:30:59Z", &Rfc3339).unwrap();
        let shown = |zone| wall_time(summer, zone).unwrap();
        assert_eq!(shown("Europe/Madrid"), WallTime { month: 7, day: 1, hour: 0, minute: 30 });
        assert_eq!(shown("America/Sao_Paulo"), WallTime { month: 6, day: 30, hour: 19, minute: 30 });
        assert!(matches!(wall_time(summer, "Mars/Olympus"), Err(Error::Fault(_))));
    }

    #[test]
    fn nonsense_is_refused() {
        for (local, zone) in [
            ("2027-01-01T00:00:00", "Mars/Olympus"),
            ("2027-01-01T00:00:00", ""),
            ("soon", "Europe/Madrid"),
            ("2027-02-30T00:00:00", "Europe/Madrid"),
        ] {
            assert!(
                matches!(instant(local, zone, Repeated::Earlier), Err(Error::Rejected(Reason::Invalid))),
                "{local} {zone}"
            );
        }
    }
}
