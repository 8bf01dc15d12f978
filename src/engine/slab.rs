//! A list whose places keep their number while they are in use, so that indexes can name a record in four bytes.

use std::marker::PhantomData;

/// The place of a record of type `T`. It is only meaningful in the list that gave it.
pub struct Place<T>(u32, PhantomData<fn() -> T>);

impl<T> Place<T> {
    /// The first place of all, to start a range with.
    pub const FIRST: Self = Self(0, PhantomData);

    fn index(self) -> usize {
        self.0 as usize
    }
}

impl<T> Clone for Place<T> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<T> Copy for Place<T> {}
impl<T> PartialEq for Place<T> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}
impl<T> Eq for Place<T> {}
impl<T> PartialOrd for Place<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<T> Ord for Place<T> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cmp(&other.0)
    }
}
impl<T> std::hash::Hash for Place<T> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}
impl<T> std::fmt::Debug for Place<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Records by place. A freed place is used again, the lowest number last freed first.
#[derive(Debug)]
pub struct Slab<T> {
    records: Vec<Option<T>>,
    free: Vec<u32>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { records: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    /// Keeps a record and says where.
    pub fn insert(&mut self, record: T) -> Place<T> {
        match self.free.pop() {
            Some(index) => {
                self.records[index as usize] = Some(record);
                Place(index, PhantomData)
            }
            None => {
                self.records.push(Some(record));
                Place((self.records.len() - 1) as u32, PhantomData)
            }
        }
    }

    /// Takes a record out.
    pub fn remove(&mut self, place: Place<T>) -> Option<T> {
        let record = self.records.get_mut(place.index())?.take()?;
        self.free.push(place.0);
        Some(record)
    }

    /// The record at a place, if it is still in use.
    pub fn get(&self, place: Place<T>) -> Option<&T> {
        self.records.get(place.index())?.as_ref()
    }

    /// The record at a place, to change.
    pub fn get_mut(&mut self, place: Place<T>) -> Option<&mut T> {
        self.records.get_mut(place.index())?.as_mut()
    }

    /// All records in the order of their places.
    pub fn iter(&self) -> impl Iterator<Item = (Place<T>, &T)> {
        self.records.iter().enumerate().filter_map(|(index, record)| Some((Place(index as u32, PhantomData), record.as_ref()?)))
    }

    /// How many records there are.
    pub fn len(&self) -> usize {
        self.records.len() - self.free.len()
    }

    /// True when there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> std::ops::Index<Place<T>> for Slab<T> {
    type Output = T;
    fn index(&self, place: Place<T>) -> &T {
        self.records[place.index()].as_ref().unwrap_or_else(|| unreachable!("place {place:?} was freed"))
    }
}

impl<T> std::ops::IndexMut<Place<T>> for Slab<T> {
    fn index_mut(&mut self, place: Place<T>) -> &mut T {
        self.records[place.index()].as_mut().unwrap_or_else(|| unreachable!("place {place:?} was freed"))
    }
}
