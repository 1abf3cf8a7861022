/** What went wrong at start, in one line for the person who started the service. */

export class LocalError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "LocalError";
  }
}

export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The `code` of a Node.js system error such as `EADDRINUSE`. */
export function codeOf(error: unknown): string | undefined {
  return error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined;
}
