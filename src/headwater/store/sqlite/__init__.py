"""The store on SQLite: one file in WAL mode, `synchronous=FULL`, hand-written SQL in `queries.sql`."""
