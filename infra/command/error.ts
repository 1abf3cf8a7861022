/** Reads the message and the code of an error of unknown type. */

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
