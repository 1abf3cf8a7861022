/** The pages of the console and their URL paths. The code of a page is loaded when the page is first opened. */
import { useQuery } from "@tanstack/react-query";
import type { Me } from "canvassing-client/api";
import { type ComponentType, type ReactNode, useEffect } from "react";
import { Redirect, Route, Switch, useSearch } from "wouter";
import { isAdmin, useConfig, useMe } from "./api/reference.ts";
import { DraftsContext } from "./drafts/draft.tsx";
import { openDrafts } from "./drafts/store.ts";
import { installWorker } from "./shell/installed.ts";
import { Shell } from "./shell/shell.tsx";
import { notifyFailed } from "./ui/notices.tsx";
import { Page } from "./ui/page.tsx";
import { NARROW } from "./ui/screen.ts";
import { Answer, lazily } from "./ui/states.tsx";

/** Returns a page with a map. If the console starts with this page, the page's large code is loaded while the user's account is loaded. */
function mapPage(path: string, load: () => Promise<ComponentType>) {
  const isFirst = location.pathname === path || (location.pathname === "/" && path === START);
  // A failure is ignored here, because `lazily` loads the code again and shows the error.
  if (isFirst) load().catch(() => undefined);
  return lazily(load);
}

/** A phone starts in the field mode, and a wide screen with the map. */
const START = matchMedia(NARROW).matches ? "/field" : "/map";
const FieldPage = mapPage("/field", async () => (await import("./field/page.tsx")).FieldPage);
const MapPage = mapPage("/map", async () => (await import("./map/page.tsx")).MapPage);
const ProspectsPage = lazily(async () => (await import("./prospects/page.tsx")).ProspectsPage);
const TerritoriesPage = lazily(async () => (await import("./territories/page.tsx")).TerritoriesPage);
const PrintPage = lazily(async () => (await import("./territories/print.tsx")).PrintPage);
const ActivityPage = lazily(async () => (await import("./activity/page.tsx")).ActivityPage);
const FilesPage = lazily(async () => (await import("./files/page.tsx")).FilesPage);
const UsersPage = lazily(async () => (await import("./users/page.tsx")).UsersPage);
const ServiceAccountsPage = lazily(async () => (await import("./keys/accounts.tsx")).ServiceAccountsPage);
const ServiceAccountPage = lazily(async () => (await import("./keys/account.tsx")).ServiceAccountPage);
const WebhooksPage = lazily(async () => (await import("./webhooks/page.tsx")).WebhooksPage);
const WebhookPage = lazily(async () => (await import("./webhooks/detail.tsx")).WebhookPage);

export function App() {
  const me = useMe();
  return (
    <Answer query={me} what="your account">
      {(user) => (
        <WithDrafts me={user}>
          <Shell me={user}>
            <Switch>
              <Route path="/">
                <Start />
              </Route>
              <Route path="/map" component={MapPage} />
              <Route path="/field" component={FieldPage} />
              <Route path="/prospects" component={ProspectsPage} />
              <Route path="/territories" component={TerritoriesPage} />
              <Route path="/territories/:id/print" component={PrintPage} />
              <Route path="/activity" component={ActivityPage} />
              <Route path="/files" component={FilesPage} />
              <Route path="/users" component={UsersPage} />
              {isAdmin(user) && <Route path="/service-accounts" component={ServiceAccountsPage} />}
              {isAdmin(user) && <Route path="/service-accounts/:id" component={ServiceAccountPage} />}
              {isAdmin(user) && <Route path="/webhooks" component={WebhooksPage} />}
              {isAdmin(user) && <Route path="/webhooks/:id" component={WebhookPage} />}
              <Route>
                <Page title="This page does not exist" lead="Choose a page from the navigation.">
                  {null}
                </Page>
              </Route>
            </Switch>
          </Shell>
        </WithDrafts>
      )}
    </Answer>
  );
}

function Start() {
  const query = useSearch();
  return <Redirect replace to={query === "" ? START : `/map?${query}`} />;
}

/** Gives the pages the drafts of the signed-in user. */
function WithDrafts({ me, children }: { me: Me; children: ReactNode }) {
  const config = useConfig();
  const issuer = config.data?.issuer;
  const drafts = useQuery({
    queryKey: ["drafts", issuer, me.user.id],
    queryFn: () => openDrafts(issuer ?? "", me.user.id),
    enabled: issuer !== undefined,
    staleTime: "static",
    networkMode: "always",
  });
  const isOffered = config.data?.offline;
  useEffect(() => {
    // The development server has no service worker. Only a build contains it.
    if (isOffered !== undefined && import.meta.env.PROD) void installWorker(isOffered).catch(notifyFailed);
  }, [isOffered]);
  return (
    <Answer query={config} what="the settings">
      {() => (
        <Answer query={drafts} what="your drafts">
          {(store) => <DraftsContext value={store}>{children}</DraftsContext>}
        </Answer>
      )}
    </Answer>
  );
}
