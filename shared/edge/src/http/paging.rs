//! Pages of a list: how many, and where the page before ended.

use domain::Reason;
use domain::limits::PAGE_MAX;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use crate::problem::Problem;

/// Entries of a page when nobody says otherwise.
const PAGE_DEFAULT: i64 = 20;

/// Which page of a list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Page {
    /// Entries at most, 1 to 100.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u16>,
    /// `next_cursor` of the page before. Opaque: what is in it may change.
    cursor: Option<String>,
}

impl Page {
    /// Entries of this page, and the entry after which it starts.
    ///
    /// # Errors
    /// 422 `invalid` for a limit out of bounds or a cursor that is not one of ours.
    pub fn bounds(&self) -> Result<(usize, Option<Uuid>), Problem> {
        let limit = self.limit.map_or(PAGE_DEFAULT, i64::from);
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(Problem::new(Reason::Invalid).with_detail(format!("limit must be 1 to {PAGE_MAX}")));
        }
        let after = self.cursor.as_deref().map(Uuid::try_parse).transpose();
        let after = after.map_err(|_| Problem::new(Reason::Invalid).with_detail("cursor is not one of ours"))?;
        Ok((usize::try_from(limit).unwrap_or(1), after))
    }
}

/// Cuts a list that was read one entry too long; the cursor of the next page when there is one.
pub fn cut<T>(entries: &mut Vec<T>, limit: usize, id: impl Fn(&T) -> Uuid) -> Option<String> {
    let more = entries.len() > limit;
    entries.truncate(limit);
    entries.last().filter(|_| more).map(|last| id(last).simple().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_bounded_and_its_cursor_is_checked() {
        let page = |limit, cursor: Option<&str>| Page { limit, cursor: cursor.map(str::to_owned) }.bounds();
        assert_eq!(page(None, None).ok(), Some((20, None)));
        let id = Uuid::from_u128(7);
        assert_eq!(page(Some(100), Some(&id.simple().to_string())).ok(), Some((100, Some(id))));
        for (limit, cursor) in [(Some(0), None), (Some(101), None), (Some(u16::MAX), None), (None, Some("x"))] {
            assert_eq!(page(limit, cursor).unwrap_err().code(), "invalid", "{limit:?} {cursor:?}");
        }
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let ids = |n: u128| (1..=n).map(Uuid::from_u128).collect::<Vec<_>>();
        let (mut long, mut exact, mut none) = (ids(3), ids(2), ids(0));
        assert_eq!(cut(&mut long, 2, |id| *id), Some(Uuid::from_u128(2).simple().to_string()));
        assert_eq!(long.len(), 2);
        assert_eq!(cut(&mut exact, 2, |id| *id), None);
        assert_eq!(cut(&mut none, 2, |id| *id), None);
    }
}
