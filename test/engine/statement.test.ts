import { describe, expect, test } from "vitest";
import { begins, writes } from "../../src/engine/statement.ts";

describe("a statement that writes is known by its text", () => {
  test.each([
    "INSERT INTO t VALUES (1)",
    "  \n\t update t set a = 1",
    "Delete From t",
    "MERGE INTO t USING s ON true WHEN MATCHED THEN DELETE",
    "REPLACE INTO t VALUES (1)",
    "TRUNCATE t",
    "COPY t FROM STDIN",
    "COPY \"from here\" (a, b) FROM 'file'",
    "COPY (DELETE FROM t RETURNING *) TO STDOUT",
    "CREATE TABLE t (a int)",
    "ALTER TABLE t ADD b int",
    "DROP TABLE t",
    "CALL transfer(1, 2)",
    "DO $$ BEGIN PERFORM 1; END $$",
    "GRANT SELECT ON t TO alice",
    "REFRESH MATERIALIZED VIEW v",
    "NOTIFY told",
    "EXECUTE prepared(1)",
    "WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a",
    "with gone as (delete from t returning *) select * from gone",
    "WITH a AS (SELECT 1) REPLACE INTO t SELECT * FROM a",
    "WITH a AS (SELECT 1) INSERT t SELECT * FROM a",
    "WITH a AS (SELECT 1) MERGE t USING a ON true WHEN NOT MATCHED THEN DO NOTHING",
    "SELECT * INTO copied FROM t",
    "EXPLAIN ANALYZE DELETE FROM t",
    "EXPLAIN (ANALYZE, BUFFERS) UPDATE t SET a = 1",
    "EXPLAIN ANALYSE VERBOSE INSERT INTO t VALUES (1)",
    "-- a remark\nINSERT INTO t VALUES (1)",
    "/* a remark; */ /* another */ INSERT INTO t VALUES (1)",
    "--\n/**/(((INSERT INTO t VALUES (1))))",
    "BEGIN; INSERT INTO t VALUES (1); COMMIT",
    "SELECT ';'; DELETE FROM t",
    "SELECT E'it\\'s'; DELETE FROM t",
    "SELECT 'it''s'; DELETE FROM t",
    "SELECT $a$ ' $b$ ; $a$; DELETE FROM t",
    'SELECT 1 AS "a;b"; DELETE FROM t',
  ])("%s", (text) => {
    expect(writes(text)).toBe(true);
  });

  test.each(["SOMETHING new", "$1 INTO t", "SELECT 'no end", "/* no end", "'only a literal'"])(
    "where it is in doubt it counts: %s",
    (text) => {
      expect(writes(text)).toBe(true);
    },
  );

  test.each([
    "",
    " ; ; ",
    "-- nothing but a remark",
    "SELECT 1",
    "(SELECT 1) UNION (SELECT 2)",
    "select * from t for update",
    "SELECT 'INSERT INTO t; DELETE FROM t'",
    "SELECT $$; DELETE FROM t$$",
    "SELECT E'\\'; DELETE FROM t --'",
    'SELECT "insert", "into" FROM t',
    "SELECT 1 -- ; DELETE FROM t",
    "SELECT 1 /* ; DELETE FROM t */",
    "SELECT replace(a, 'b', 'c'), updated_at, deleted FROM t",
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "WITH a AS (SELECT * FROM t FOR NO KEY UPDATE) SELECT replace(b, 'c', '') FROM a FOR UPDATE",
    "VALUES (1)",
    "TABLE t",
    "SHOW server_version",
    "EXPLAIN INSERT INTO t VALUES (1)",
    "EXPLAIN ANALYZE SELECT 1",
    "EXPLAIN (ANALYZE) SELECT 1",
    "EXPLAIN QUERY PLAN DELETE FROM t",
    "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL idle_in_transaction_session_timeout = 1",
    "START TRANSACTION",
    "COMMIT",
    "ROLLBACK TO SAVEPOINT a",
    "SET search_path = 'a'",
    "PRAGMA busy_timeout = 10",
    "COPY t TO STDOUT",
    "COPY (SELECT * FROM t) TO STDOUT",
    "DECLARE c CURSOR FOR SELECT 1",
    "LISTEN told",
    "LOCK TABLE t",
  ])("one that writes nothing is known, too: %s", (text) => {
    expect(writes(text)).toBe(false);
  });

  test("a long literal is passed over as a short one is", () => {
    const long = "x'';".repeat(500_000);
    expect(writes(`SELECT '${long}'`)).toBe(false);
    expect(writes(`SELECT E'${"\\'".repeat(500_000)}'; DELETE FROM t`)).toBe(true);
  });
});

test("the statement that opens a transaction is known by its text", () => {
  const opening = ["BEGIN", "-- now\n begin immediate", "START TRANSACTION; SET LOCAL a = 1"];
  const others = ["SELECT 1; BEGIN", "'begin'", "SAVEPOINT a", ""];
  expect(opening.map(begins)).toEqual(opening.map(() => true));
  expect(others.map(begins)).toEqual(others.map(() => false));
});
