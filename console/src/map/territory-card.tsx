/** A card on the map for the territory that the user has clicked. */
import { Link } from "wouter";
import { nameOf, useUsers } from "../api/reference.ts";
import { Button } from "../ui/button.tsx";
import { Icon } from "../ui/icon.tsx";
import { Answer } from "../ui/states.tsx";
import { amount } from "../ui/text.ts";
import { useStats } from "./queries.ts";
import type { ClickedTerritory } from "./territories.ts";
import style from "./territory-card.module.css";

interface CardProps {
  readonly territory: ClickedTerritory;
  /** Undefined if the map already shows only the prospects of this territory. */
  readonly onFilter: (() => void) | undefined;
  readonly onClose: () => void;
}

export function TerritoryCard({ territory: { id, name, assignedToUserId }, onFilter, onClose }: CardProps) {
  const stats = useStats(id);
  const users = useUsers().data;
  const assignee = users?.find((user) => user.id === assignedToUserId);
  return (
    <section className={`${style.card} card stack tight`} aria-label={`Territory ${name}`}>
      <header className="row between broken">
        <h2>{name}</h2>
        <Button kind="quiet" aria-label="Close the territory" onClick={onClose}>
          <Icon name="close" />
        </Button>
      </header>
      <Answer query={stats} what="the counts">
        {({ total }) => (
          <p>
            <strong>{amount(total, "prospect")}</strong> inside.
            {users !== undefined && ` Assigned to ${assignee === undefined ? "nobody" : nameOf(assignee)}.`}
          </p>
        )}
      </Answer>
      <div className="row">
        {onFilter !== undefined && <Button onClick={onFilter}>Show only these</Button>}
        <Link href={`/territories?territory=${id}`}>Open the territory</Link>
      </div>
    </section>
  );
}
