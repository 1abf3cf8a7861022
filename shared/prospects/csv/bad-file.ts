/** Why a file as a whole cannot be imported. */

export class BadFile extends Error {
  override readonly name = "BadFile";
}
