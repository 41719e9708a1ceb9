/* ---- promises that are checked where things happen ---- */

/* S1, S2: at most one effect, at most one execution. */
inline count_effect() { effects++; assert(effects <= 1) }
inline count_execution() { executions++; assert(executions <= 1) }

/* S8: the record and the world agree whenever a record ends. */
inline agree() {
  assert(st != COMPLETED || !EXTERNAL || executions == 1 || (DEDUPLICATES && kept[gen] == MADE));
  assert(st != COMPLETED || STEPS || effects == 1);
  assert(st != FAILED || (effects == 0 && executions == 0));
  assert(st != RELEASED || effects == 0);
  assert(st != RELEASED || executions == 0 || (STEPS && mark == FINISHED))
}

/* S3, S5, S7, S13: what is sent is what is on record, for this body, and the same for everyone. */
inline send(body, bytes) {
  assert(CONCLUDED && answer == bytes);
  assert(fp == body);
  assert(told == 0 || told == bytes);
  told = bytes
}

/* ---- writes: the body of one compare-and-set ---- */

inline begins(c, body) {
  token++;
  assert(token < 40); /* the bound of the model, not of the store */
  owner = token; rev = 0; writer = c + 1;
  st = IN_PROGRESS; lapse = 0; looks = 0; disposition = 0; evidence = 0;
  acting[c] = token; mine = token; r = 0 /* the reply: the version that stands now */
}

inline insert_claim(c, body) {
  begins(c, body);
  fp = body; gen = 0; mark = CLEAR; answer = 0;
  open_with_claim();
  g = gen; stood = mark
}

inline opened() { dueToken = (CLASS == QUERY -> owner : 0); ttlOver = false; forgotten = false }

/* An operation's mark opens in its claim's own write; an open one stays, and so does one that has finished. */
inline open_with_claim() {
  if
  :: !STEPS && EXTERNAL && mark == CLEAR -> mark = OPEN; opened()
  :: else
  fi
}

inline take_over(c, body) {
  if
  :: mark == REFUSED && fp != body -> mark = CLEAR; gen++ /* what one body was refused, a corrected one is not */
  :: else
  fi;
  assert(gen < GENERATIONS);
  begins(c, body);
  fp = body;
  open_with_claim();
  g = gen; stood = mark
}

/* S6: nobody writes what is concluded. */
inline by(w) { assert(!(CONCLUDED)); rev++; writer = w }

inline conclude(w, result) {
  by(w);
  st = (result == DECLINED -> FAILED : COMPLETED);
  answer = owner; lapse = 0; looks = 0; disposition = 0; evidence = 0;
  if
  :: EXTERNAL && mark == OPEN -> mark = (result == DECLINED -> REFUSED : FINISHED)
  :: else
  fi
}

inline release(w, cancelled) {
  by(w);
  st = RELEASED; lapse = 0; looks = 0; disposition = 0; evidence = 0;
  if
  :: mark == OPEN -> mark = CLEAR; gen = gen + cancelled; assert(gen < GENERATIONS)
  :: else
  fi;
  agree()
}

/* judgeOpenMarks says who is to end it; the owner stays, so that its late result still counts. */
inline doubt(w, result) {
  by(w);
  st = UNKNOWN; lapse = 0; looks = 0; evidence = result;
  disposition = (CLASS == BLIND && result == 0 -> REVIEW : RECONCILE)
}

inline judged(w) {
  if
  :: DIED_IN_DOUBT -> doubt(w, 0)
  :: else -> release(w, 0)
  fi
}
