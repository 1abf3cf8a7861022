/** Says how many prospects a change concerns. Before a dangerous change, the user types this number. */
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useState } from "react";
import { Field, Input } from "./field.tsx";
import { Answer } from "./states.tsx";
import { amount } from "./text.ts";

/** A change of more prospects needs the number. */
const MANY = 500;

interface Count {
  /** Undefined until it is known. */
  readonly total: number | undefined;
  /** True if the change concerns a prospect, and the user has typed the number if it is needed. */
  readonly isReady: boolean;
  readonly shown: ReactNode;
}

/**
 * @param change What the user has chosen, or undefined while something is missing. If it changes, the number that the user has typed to
 * confirm it is discarded.
 */
export function useCount(change: unknown, count: UseQueryResult<number>, isDangerous: boolean): Count {
  const of = JSON.stringify(change);
  const [last, setLast] = useState({ of, typed: "" });
  const typed = last.of === of ? last.typed : "";
  const total = change === undefined ? undefined : count.data;
  const hasSome = total !== undefined && total > 0;
  const needsNumber = hasSome && (total > MANY || isDangerous);
  return {
    total,
    // The number may be typed with separators, as the page shows it.
    isReady: hasSome && (!needsNumber || typed.replace(/[\s,.]/g, "") === String(total)),
    shown: change !== undefined && (
      <>
        <Answer query={count} what="the number of prospects">
          {(prospects) => (
            <p>
              This concerns <strong>{amount(prospects, "prospect")}</strong>. It can be undone afterwards.
            </p>
          )}
        </Answer>
        {needsNumber && (
          <Field label={`Type ${total} to confirm`}>
            <Input
              inputMode="numeric"
              autoComplete="off"
              value={typed}
              onChange={({ target }) => setLast({ of, typed: target.value })}
            />
          </Field>
        )}
      </>
    ),
  };
}
