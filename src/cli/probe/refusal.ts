/** The probe cannot be carried out: nothing is said about the server's promises. */
export class CannotProbeError extends Error {
  override readonly name = "CannotProbeError";
}

/** The server owed an answer and gave none that can be read. */
export class NoAnswerError extends Error {
  override readonly name = "NoAnswerError";
}

/** The time for the whole probe is over. */
export class OutOfTimeError extends Error {
  override readonly name = "OutOfTimeError";
}
