/** Prints the target of a command. */

/** Prints the first line on stderr, so that an operator notices a wrong target, such as a local service that runs by chance. */
export const nameTarget = (target: string): void => console.error(`target: ${target}`);
