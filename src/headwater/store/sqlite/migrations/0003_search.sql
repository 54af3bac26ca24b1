-- The streams whose text can be searched. `fields` is a JSON array: the field at place n is in column cn of `search`.
-- `built_to` is the version up to which the stream's older records are indexed, NULL once all of them are.
CREATE TABLE search_streams (
    stream INTEGER PRIMARY KEY REFERENCES streams (id),
    fields TEXT NOT NULL,
    built_to INTEGER
);

-- One row for each live record of those streams, under the number of its version. No text is kept here: it stands in
-- `versions`.
CREATE VIRTUAL TABLE search USING fts5 (
    c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, c10, c11, c12, c13, c14, c15,
    content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2'
);
