/** The doors of a territory for printing, in the order of a walk, with space for notes. */
import { useQuery } from "@tanstack/react-query";
import type { ListedProspect } from "canvassing-client/api";
import { useParams } from "wouter";
import { answer, api } from "../api/client.ts";
import { useTerritories } from "../api/reference.ts";
import { titleOf } from "../prospects/columns.tsx";
import { LARGEST_PAGE } from "../prospects/queries.ts";
import { StatusMark } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { type Column, DataTable } from "../ui/data-table.tsx";
import { Page } from "../ui/page.tsx";
import { Answer, Empty } from "../ui/states.tsx";
import { amount, dateText } from "../ui/text.ts";
import style from "./page.module.css";
import { houseOf, streetsOf } from "./walk.ts";

const columns: readonly Column<ListedProspect>[] = [
  {
    id: "door",
    header: "Door",
    cell: (door) =>
      (door.address && houseOf(door.address)) ??
      [door.address?.address1 ?? titleOf(door), door.address?.address2].filter(Boolean).join(", "),
  },
  { id: "name", header: "Name", cell: ({ name }) => name },
  { id: "status", header: "Status", cell: ({ currentStatus }) => <StatusMark status={currentStatus} /> },
  { id: "phone", header: "Phone", cell: ({ phoneNumber }) => <span className="whole">{phoneNumber}</span> },
  { id: "notes", header: "Notes", cell: () => "" },
];

export function PrintPage() {
  const { id = "" } = useParams<{ id: string }>();
  const name = useTerritories().data?.find((territory) => String(territory.id) === id)?.name;
  const query = useQuery({ queryKey: ["prospects", "print", id], queryFn: () => doorsOf(id) });
  return (
    <Answer query={query} what="the doors">
      {(doors) => (
        <Page
          title={name ?? "Territory"}
          lead={`${amount(doors.length, "door")} on ${dateText(new Date().toISOString())}`}
          actions={
            <Button kind="main" onClick={() => print()}>
              Print
            </Button>
          }
        >
          {doors.length === 0 && <Empty title="No prospect is inside this territory" />}
          {streetsOf(doors).map(({ name: street = "Without a house number", doors: rows }) => (
            <section key={street} className={`${style.street} stack tight`}>
              <h2>{street}</h2>
              <DataTable label={street} columns={columns} rows={rows} />
            </section>
          ))}
        </Page>
      )}
    </Answer>
  );
}

async function doorsOf(territoryId: string): Promise<readonly ListedProspect[]> {
  const doors: ListedProspect[] = [];
  for (let page = 1; ; page++) {
    const query = { territoryId, page, pageSize: LARGEST_PAGE };
    const { items, total } = await answer(api.GET("/api/prospects", { params: { query } }));
    doors.push(...items);
    if (items.length === 0 || doors.length >= total) return doors;
  }
}
